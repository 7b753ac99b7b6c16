-- Proving once more that it is you, where a route or a change of the account asks for it.
return flow "step_up" {
  purpose = "step_up",
  account = "existing",
  steps = { any_of { "email_code", "passkey", "totp" } },
  lifetime = "15m",
  next = { returning = "/" },
}
