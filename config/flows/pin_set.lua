-- Choosing a PIN, for someone who has none. The name says what the flow does: it begins with a session that has recently proved something
-- that the account holds (else 403 step_up_required), so that a stolen session cannot make the PIN that is missing.
return flow "pin_set" {
  account = "existing",

  steps = {
    { "pin" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
