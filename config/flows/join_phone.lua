-- Adding a phone number after a first sign-in by Google. Where another account has the number, the two are one person: that account gets
-- the Google identity and its address, and the session. The name says what the flow does; it is begun with a session.
return flow "join_phone" {
  account = "existing",

  steps = {
    { "phone_otp" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
