-- Creating an account. Delete this file if people may not create accounts themselves.
return flow "register" {
  purpose = "register",
  account = "new",
  steps = { { "email_code" } },
  lifetime = "15m",
  session = { lifetime = "12h", idle = "1h" },
  next = { new = "/", returning = "/" },
}
