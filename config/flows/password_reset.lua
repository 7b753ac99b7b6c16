-- A forgotten password: a code to the address, then a new password. The name of the flow says that the password is chosen here, and
-- that all other sessions end. Proving the address takes it from everybody who only claimed it.
return flow "password_reset" {
  account = "existing",

  steps = {
    { "email_code" },
    { "password" },
  },

  lifetime = "15m",
  session = { lifetime = "12h", idle = "1h" },
  next = { new = "/profile-setup", returning = "/home" },
}
