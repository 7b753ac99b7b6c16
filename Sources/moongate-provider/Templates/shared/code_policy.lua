-- The defaults of new_provider. An operator's policies/new_provider.lua replaces the fields that it names (`limits` as
-- a whole).
return policy "new_provider" {
  code   = { length = 6, alphabet = "digits", ttl = "10m" },
  timers = { resend_after = { "60s" } },
  limits = {
    send     = { on = "send",   per = "email", max = 4,  window = "15m" },
    send_day = { on = "send",   per = "email", max = 10, window = "24h" },
    send_ip  = { on = "send",   per = "ip",    max = 30, window = "1h" },
    verify   = { on = "verify", per = "email", max = 5,  window = "24h", counts = "failures",
      lock = { "15m", "1h", "6h", "24h" } },
  },
  unknown_account = "conceal",
  message = "{code} is your {service} code. It works for {minutes} minutes.",
}
