-- Adds a phone number after a first sign-in by Google. If another account has the number, the two
-- accounts are merged. The flow requires a session.
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
