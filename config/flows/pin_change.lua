-- Choosing another PIN: the old one and the new one in one try. The name says what the flow does: it is begun with a session.
return flow "pin_change" {
  account = "existing",

  steps = {
    { "pin" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
