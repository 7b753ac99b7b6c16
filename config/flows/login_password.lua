-- Sign-in by email address and password. A verified address opens only the account that verified
-- it. An unverified address opens the newest account that claims it.
return flow "login_password" {
  -- The flow exists only if gateway.lua configures this provider.
  purpose = "sign_in",
  provider = "password",
  account = "existing",

  steps = {
    { "password" },
  },

  lifetime = "15m",
  session = { lifetime = "12h", idle = "1h" },
  next = { returning = "/home" },
}
