-- Setting up an authenticator app, for someone who has none. The name says what the flow does: it begins with a session that has recently
-- proved something that the account holds (else 403 step_up_required), so that a stolen session cannot set up an app of its own.
return flow "totp_set" {
  account = "existing",

  steps = {
    { "totp" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
