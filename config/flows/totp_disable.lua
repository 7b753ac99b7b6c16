-- Removing the authenticator app, by one more code of it or a recovery code. The name says what the flow does: it is begun with a session.
return flow "totp_disable" {
  account = "existing",

  steps = {
    { "totp" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
