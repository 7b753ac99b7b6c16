-- Changing one's phone number, also for who lost the old one and signed in by email: a code goes to the new number, which takes the
-- old one's place. The name says what the flow does: the number is the new one, and the flow begins with a session that has recently proved
-- something that the account holds (else 403 step_up_required). All other sessions of the account end.
return flow "change_phone" {
  account = "existing",

  steps = {
    { "phone_otp" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
