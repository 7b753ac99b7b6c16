-- The defaults of the phone code. The operator's config/policies/phone_otp.lua replaces the fields that it names
-- (`limits` as a whole).
return policy "phone_otp" {
  code   = { length = 6, alphabet = "digits", ttl = "10m" },
  timers = { resend_after = { "60s", "120s" } },
  limits = {
    send         = { on = "send", per = "phone",   max = 4,    window = "15m" },
    send_day     = { on = "send", per = "phone",   max = 10,   window = "24h" },
    send_ip      = { on = "send", per = "ip",      max = 30,   window = "1h" },
    -- Ceilings on what messages cost. They neither count nor refuse trusted devices: those that have passed for the
    -- account before.
    send_network = { on = "send", per = "network", max = 300,  window = "1h" },
    send_prefix  = { on = "send", per = "prefix",  max = 300,  window = "1h" },
    sms_global   = { on = "send", per = "global",  max = 5000, window = "1h" },
    verify  = { on = "verify", per = "phone",   max = 5,  window = "24h", counts = "failures",
      lock = { "15m", "1h", "6h", "24h" } },
    hard    = { on = "verify", per = "account", max = 100, counts = "consecutive_failures",
      lock = { "1h", "6h", "24h" } },
  },
  unknown_account = "reveal",
  message = "{code} is your {service} verification code",
}
