-- Adding a phone number after a first sign-in by Google. Where another account has the number, the two are one person:
-- that account gets the Google identity and its address, and the session. The flow begins with a session.
return flow "join_phone" {
  purpose = "join",
  identifier = "phone",
  account = "existing",

  steps = {
    { "phone_otp" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
