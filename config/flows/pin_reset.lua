-- A forgotten PIN: a code to the account's own address, or number, then a new PIN. The name says what the flow does: it is begun with a
-- session, ends the PIN's lock and all other sessions.
return flow "pin_reset" {
  account = "existing",

  steps = {
    -- Whoever has verified no address gets the code by SMS.
    any_of { "email_code", "phone_otp" },
    { "pin" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
