-- Change the email address: a code goes to the new one, which replaces the old one when the code is entered. The old
-- address receives a notice. The flow begins with a session that has recently proved something that the account holds
-- (else 403 step_up_required). Where an address is replaced, all other sessions of the account end.
return flow "change_email" {
  purpose = "change",
  identifier = "email",
  account = "existing",

  steps = {
    { "email_code", skippable = true },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
