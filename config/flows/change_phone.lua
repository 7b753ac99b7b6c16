-- Changing one's phone number, also for who lost the old one and signed in by email: a code goes to the new number, which takes the
-- old one's place. The name says what the flow does: it is begun with a session, and the number is the new one.
return flow "change_phone" {
  account = "existing",

  steps = {
    { "phone_otp" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
