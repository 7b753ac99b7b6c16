-- Signing in by email address and password. An address that nobody has proved opens the newest account that claims it;
-- once someone proves it, only theirs.
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
