-- PINs (passcodes of six digits): rate limits. A field that is missing here keeps the default of
-- the provider. `limits` replaces all default limits. policies/phone_otp.lua explains the fields.
-- The provider refuses PINs that are easy to guess.
return policy "pin" {
  limits = {
    -- Five wrong PINs lock the PIN of the account in all flows: 15 minutes at first, then longer.
    -- Resetting the PIN by a code ends the lock.
    verify = { on = "verify", per = "account", max = 5, window = "24h", counts = "failures",
      lock = { "15m", "1h", "6h", "24h" } },
    -- Bounds how many accounts one IP address can try.
    verify_ip = { on = "verify", per = "ip", max = 100, window = "1h", counts = "failures" },
    -- 100 wrong PINs in a row lock it, each time for longer. A right or new PIN resets the count.
    hard = { on = "verify", per = "account", max = 100, counts = "consecutive_failures", lock = { "1h", "6h", "24h" } },
  },

  -- The step does not reveal whether an account exists.
  unknown_account = "conceal",
}
