-- Replace a forgotten PIN: a code to an address or number of the account, then a new PIN. The reset ends the PIN's lock
-- and all other sessions of the account.
return flow "pin_reset" {
  purpose = "reset",
  provider = "pin",
  account = "existing",

  steps = {
    -- An account without a verified address receives the code by SMS.
    any_of { "email_code", "phone_otp" },
    { "pin" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
