-- Proving once more that it is you, where a route or a change of the account asks for it.
return flow "step_up" {
  purpose = "step_up",
  account = "existing",
  steps = { any_of { @STEP_UP@ } },
  lifetime = "15m",
  next = { returning = "/" },
}
