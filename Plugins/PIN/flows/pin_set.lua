-- Choose a PIN, for an account that has none. The flow begins with a session that has recently proved something that
-- the account holds (else 403 step_up_required), so that a stolen session cannot create the missing PIN.
return flow "pin_set" {
  purpose = "set",
  provider = "pin",
  account = "existing",

  steps = {
    { "pin" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
