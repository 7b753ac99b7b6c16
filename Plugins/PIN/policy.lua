-- The defaults of the PIN. The operator's config/policies/pin.lua replaces the fields that it names (`limits` as a
-- whole).
return policy "pin" {
  limits = {
    verify = { on = "verify", per = "account", max = 5,   window = "24h", counts = "failures",
      lock = { "15m", "1h", "6h", "24h" } },
    hard   = { on = "verify", per = "account", max = 100, counts = "consecutive_failures",
      lock = { "1h", "6h", "24h" } },
  },
  unknown_account = "conceal",
}
