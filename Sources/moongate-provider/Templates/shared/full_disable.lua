-- Remove the secret phrase. The phrase itself proves who asks.
return flow "new_provider_disable" {
  purpose = "disable",
  provider = "new_provider",
  account = "existing",
  steps = { { "new_provider" } },
  next = { returning = "/home" },
}
