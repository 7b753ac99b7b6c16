-- Choose a secret phrase. The account page leads signed-in users here.
return flow "new_provider_set" {
  purpose = "set",
  provider = "new_provider",
  account = "existing",
  steps = { { "new_provider" } },
  next = { returning = "/home" },
}
