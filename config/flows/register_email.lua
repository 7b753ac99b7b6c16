-- Registering with an email address, a password and a name.
return flow "register_email" {
  purpose = "register",
  provider = "password",
  account = "new",

  steps = {
    { "password" },
    -- "Skip for now": the address stays unverified, and belongs to the first account that verifies it. Without
    -- `skippable`, every user must verify it.
    { "email_code", skippable = true },
  },

  lifetime = "15m",
  session = { lifetime = "12h", idle = "1h" },
  next = { new = "/profile-setup", returning = "/home" },
}
