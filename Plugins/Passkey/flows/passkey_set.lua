-- Add a passkey. The flow begins with a session that has recently proved something that the account already holds (else
-- 403 step_up_required), so that the thief of a session cannot add a passkey.
return flow "passkey_set" {
  purpose = "set",
  provider = "passkey",
  account = "existing",

  steps = {
    { "passkey" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
