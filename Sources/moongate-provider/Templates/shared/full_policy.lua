-- The defaults of new_provider. An operator's policies/new_provider.lua replaces the fields that it names (`limits` as
-- a whole).
return policy "new_provider" {
  limits = {
    verify = { on = "verify", per = "account", max = 5, window = "24h", counts = "failures",
      lock = { "15m", "1h", "6h", "24h" } },
  },
  unknown_account = "conceal",
}
