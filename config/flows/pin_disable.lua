-- Turning the PIN off, by entering it once more. The name says what the flow does: it is begun with a session.
return flow "pin_disable" {
  account = "existing",

  steps = {
    { "pin" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
