-- PINs: how many wrong ones are too many. What is not named here keeps the provider's default; `limits` is replaced as
-- a whole.
-- policies/phone_otp.lua says what each word means. A PIN is six digits; which ones are too easy to guess is the
-- provider's to say.
return policy "pin" {
  limits = {
    -- Five wrong PINs lock the account's PIN in all flows: a quarter of an hour first, then longer.
    -- Resetting the PIN by a code ends the lock.
    verify = { on = "verify", per = "account", max = 5, window = "24h", counts = "failures",
      lock = { "15m", "1h", "6h", "24h" } },
    -- One network address cannot try account after account.
    verify_ip = { on = "verify", per = "ip", max = 100, window = "1h", counts = "failures" },
    -- A hundred wrong PINs without one right PIN lock it, each time for longer. A right or new PIN resets the count.
    hard = { on = "verify", per = "account", max = 100, counts = "consecutive_failures", lock = { "1h", "6h", "24h" } },
  },

  -- The step of a PIN does not reveal whether an account exists.
  unknown_account = "conceal",
}
