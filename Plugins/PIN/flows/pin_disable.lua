-- Turn the PIN off by entering it once more.
return flow "pin_disable" {
  purpose = "disable",
  provider = "pin",
  account = "existing",

  steps = {
    { "pin" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
