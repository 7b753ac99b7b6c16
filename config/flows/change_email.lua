-- Changing one's email address: a code goes to the new one, and it takes the old one's place once it is proved. The old address is told.
-- The name says what the flow does: it is begun with a session, and the address is the new one.
return flow "change_email" {
  account = "existing",

  steps = {
    { "email_code", skippable = true },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
