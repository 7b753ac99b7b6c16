-- The defaults of the password. The operator's config/policies/password.lua replaces the fields that it names (`limits`
-- as a whole).
return policy "password" {
  limits = {
    begin_ip  = { on = "begin",  per = "ip",      max = 60,  window = "1h" },
    -- Each account costs a hash.
    register_ip      = { on = "register", per = "ip",      max = 10,   window = "1h" },
    register_network = { on = "register", per = "network", max = 200,  window = "24h" },
    register_global  = { on = "register", per = "global",  max = 5000, window = "1h" },
    verify    = { on = "verify", per = "email",   max = 5,   window = "24h", counts = "failures",
      lock = { "15m", "1h", "6h", "24h" } },
    account   = { on = "verify", per = "account", max = 5,   window = "24h", counts = "failures",
      lock = { "15m", "1h", "6h", "24h" } },
    verify_ip = { on = "verify", per = "ip",      max = 100, window = "1h",  counts = "failures" },
    hard      = { on = "verify", per = "account", max = 100, counts = "consecutive_failures",
      lock = { "1h", "6h", "24h" } },
  },
  unknown_account = "conceal",
}
