-- Registering with an email address, a password and a name.
return flow "register_email" {
  purpose = "register",
  provider = "password",
  account = "new",

  steps = {
    { "password" },
    -- "Skip for now": the address stays unproved, and whoever proves it first owns it. Without `skippable` nobody gets
    -- in unproved.
    { "email_code", skippable = true },
  },

  lifetime = "15m",
  session = { lifetime = "12h", idle = "1h" },
  next = { new = "/profile-setup", returning = "/home" },
}
