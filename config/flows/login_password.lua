-- Signing in by email address and password. An unverified address opens the newest account that claims it. A
-- verified address opens only the account that verified it.
return flow "login_password" {
  -- Without the provider in gateway.lua there is no such flow.
  purpose = "sign_in",
  provider = "password",
  account = "existing",

  steps = {
    { "password" },
  },

  lifetime = "15m",
  session = { lifetime = "12h", idle = "1h" },
  next = { new = "/profile-setup", returning = "/home" },
}
