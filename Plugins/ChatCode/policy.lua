-- The defaults of codes by chat. The operator's config/policies/chat_code.lua replaces the fields that it names
-- (`limits` as a whole).
return policy "chat_code" {
  code   = { length = 6, alphabet = "digits", ttl = "10m" },
  timers = { resend_after = { "60s", "120s" } },
  limits = {
    send         = { on = "send", per = "email",   max = 4,    window = "15m" },
    send_day     = { on = "send", per = "email",   max = 10,   window = "24h" },
    send_ip      = { on = "send", per = "ip",      max = 30,   window = "1h" },
    send_network = { on = "send", per = "network", max = 300,  window = "1h" },
    chat_global  = { on = "send", per = "global",  max = 5000, window = "1h" },
    verify  = { on = "verify", per = "email",   max = 5,   window = "24h", counts = "failures",
      lock = { "15m", "1h", "6h", "24h" } },
    hard    = { on = "verify", per = "account", max = 100, counts = "consecutive_failures",
      lock = { "1h", "6h", "24h" } },
  },
  unknown_account = "conceal",
  message = "{code} is your {service} code. Nobody from {service} will ask you for it.",
}
