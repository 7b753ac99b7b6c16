-- Registration with email address, password and name.
return flow "register_email" {
  purpose = "register",
  provider = "password",
  account = "new",

  steps = {
    { "password" },
    -- Users may skip this step. Their address stays unverified, and belongs to the first account
    -- that verifies it. Remove `skippable` to make verification mandatory.
    { "email_code", skippable = true },
  },

  lifetime = "15m",
  session = { lifetime = "12h", idle = "1h" },
  next = { new = "/profile-setup", returning = "/home" },
}
