-- Replace the PIN. The current PIN and the new one are sent together.
return flow "pin_change" {
  purpose = "change",
  provider = "pin",
  account = "existing",

  steps = {
    { "pin" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
