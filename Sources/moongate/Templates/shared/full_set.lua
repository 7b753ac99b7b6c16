-- Choose a secret phrase. Somebody who is signed in comes here from the account page.
return flow "new_provider_set" {
  purpose = "set",
  provider = "new_provider",
  account = "existing",
  steps = { { "new_provider" } },
  next = { returning = "/home" },
}
