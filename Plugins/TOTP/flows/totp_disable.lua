-- Remove the authenticator app. One more code of the app, or a recovery code, proves who asks.
return flow "totp_disable" {
  purpose = "disable",
  provider = "totp",
  account = "existing",

  steps = {
    { "totp" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
