-- Change the phone number, also after the old number was lost and the person signed in by email: a code goes to the new
-- number, which replaces the old one. The flow begins with a session that has recently proved something that the
-- account holds (else 403 step_up_required). All other sessions of the account end.
return flow "change_phone" {
  purpose = "change",
  identifier = "phone",
  account = "existing",

  steps = {
    { "phone_otp" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
