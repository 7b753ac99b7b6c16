-- Passwords: how many wrong ones are too many. What is not named here keeps the provider's default; `limits` is replaced as a whole.
-- policies/phone_otp.lua says what each word means. A password has 8 to 1,024 characters; which ones are too easy to guess is the provider's
-- to say.
return policy "password" {
  limits = {
    -- Five wrong passwords lock the address, whether anybody has it or not: a quarter of an hour first, then longer.
    verify = { on = "verify", per = "email", max = 5, window = "24h", counts = "failures", lock = { "15m", "1h", "6h", "24h" } },
    -- The same for the account, in flows that name no address.
    account = { on = "verify", per = "account", max = 5, window = "24h", counts = "failures", lock = { "15m", "1h", "6h", "24h" } },
    -- One network address cannot try address after address.
    verify_ip = { on = "verify", per = "ip", max = 100, window = "1h", counts = "failures" },
    -- A hundred wrong passwords without one right one turn the account's password off, until an operator turns it on.
    hard = { on = "verify", per = "account", max = 100, counts = "consecutive_failures", disable = true },
  },

  -- "conceal": an address that nobody has is answered like a wrong password, after the same work. "reveal" says so (404).
  unknown_account = "conceal",
}
