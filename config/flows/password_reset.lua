-- Replaces a forgotten password: a code by email, then a new password. All other sessions of the
-- account end. Verifying the address removes it from accounts that claimed it without verification.
return flow "password_reset" {
  purpose = "reset",
  provider = "password",
  account = "existing",

  steps = {
    { "email_code" },
    { "password" },
  },

  lifetime = "15m",
  session = { lifetime = "12h", idle = "1h" },
  next = { returning = "/home" },
}
