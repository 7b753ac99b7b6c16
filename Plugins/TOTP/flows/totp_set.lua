-- Set up an authenticator app, for an account that has none. The flow begins with a session that has recently proved
-- something that the account holds (else 403 step_up_required), so that a stolen session cannot set up an app of its
-- own.
return flow "totp_set" {
  purpose = "set",
  provider = "totp",
  account = "existing",

  steps = {
    { "totp" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
