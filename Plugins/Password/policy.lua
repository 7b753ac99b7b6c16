-- The defaults of the password. The operator's config/policies/password.lua replaces the fields that it names (`limits` as a whole).
return policy "password" {
  limits = {
    verify    = { on = "verify", per = "email",   max = 5,   window = "24h", counts = "failures", lock = { "15m", "1h", "6h", "24h" } },
    account   = { on = "verify", per = "account", max = 5,   window = "24h", counts = "failures", lock = { "15m", "1h", "6h", "24h" } },
    verify_ip = { on = "verify", per = "ip",      max = 100, window = "1h",  counts = "failures" },
    hard      = { on = "verify", per = "account", max = 100, counts = "consecutive_failures", disable = true },
  },
  unknown_account = "conceal",
}
