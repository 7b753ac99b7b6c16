-- The defaults of the authenticator app. The operator's config/policies/totp.lua replaces the fields that it names
-- (`limits` as a whole).
-- Three codes of a million are right at any time, so locks are longer here than a phone code's: 379 guesses in 30 days,
-- 0.11 %.
return policy "totp" {
  limits = {
    verify = { on = "verify", per = "account", max = 5,   window = "24h", counts = "failures",
      lock = { "30m", "3h", "12h", "24h" } },
    hard   = { on = "verify", per = "account", max = 100, counts = "consecutive_failures",
      lock = { "1h", "6h", "24h" } },
  },
  unknown_account = "conceal",
}
