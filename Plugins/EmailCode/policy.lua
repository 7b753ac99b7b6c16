-- The defaults of the email code. The operator's config/policies/email_code.lua replaces the fields that it names
-- (`limits` as a whole).
return policy "email_code" {
  code   = { length = 6, alphabet = "digits", ttl = "15m" },
  timers = { resend_after = { "60s" } },
  limits = {
    send         = { on = "send", per = "email",   max = 4,     window = "15m" },
    send_day     = { on = "send", per = "email",   max = 10,    window = "24h" },
    send_ip      = { on = "send", per = "ip",      max = 30,    window = "1h" },
    -- Ceilings on what a flood sends. They neither count nor refuse trusted devices: those that have passed for the
    -- account before.
    send_network = { on = "send", per = "network", max = 300,   window = "1h" },
    mail_global  = { on = "send", per = "global",  max = 20000, window = "1h" },
    verify    = { on = "verify", per = "email",   max = 5,  window = "24h", counts = "failures",
      lock = { "15m", "1h", "6h", "24h" } },
    verify_ip = { on = "verify", per = "ip",      max = 50, window = "1h", counts = "failures" },
    hard      = { on = "verify", per = "account", max = 100, counts = "consecutive_failures",
      lock = { "1h", "6h", "24h" } },
  },
  unknown_account = "conceal",
  message = "{code} is your {service} verification code. It works for {minutes} minutes.",
}
