-- Changing one's email address: a code goes to the new one, and it takes the old one's place once it is proved. The old address is told.
-- The name says what the flow does: the address is the new one, and the flow begins with a session that has recently proved something that the
-- account holds (else 403 step_up_required). All other sessions of the account end where an address is replaced.
return flow "change_email" {
  account = "existing",

  steps = {
    { "email_code", skippable = true },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
