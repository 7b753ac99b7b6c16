-- Signing in: for people who have an account.
return flow "login" {
  account = "existing",
  steps = { any_of { @SIGN_IN@ } },
  lifetime = "15m",
  session = { lifetime = "12h", idle = "1h" },
  next = { new = "/", returning = "/" },
}
