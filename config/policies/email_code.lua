-- Codes by email: lifetime, resends, rate limits. A field that is missing here keeps the default of
-- the provider. `limits` replaces all default limits. policies/phone_otp.lua explains the fields.
return policy "email_code" {
  -- Mail can be slow, so codes live longer than those by SMS.
  code = { length = 6, alphabet = "digits", ttl = "15m" },

  timers = { resend_after = { "60s" } },

  limits = {
    -- One code and three resends.
    send = { on = "send", per = "email", max = 4, window = "15m" },
    -- Ten a day, so that attackers cannot flood a mailbox.
    send_day = { on = "send", per = "email", max = 10, window = "24h" },
    -- Bounds how many email addresses one IP address can send mail to.
    send_ip = { on = "send", per = "ip", max = 30, window = "1h" },

    -- Ceilings, so that a flood does not ruin the reputation of your mail server. They do not apply
    -- to a device that has signed in to the account before.
    -- One network (IPv4 /24, IPv6 /48): as much as ten busy IP addresses.
    send_network = { on = "send", per = "network", max = 300, window = "1h" },
    -- All mails of an hour. Set it to three times your busiest hour.
    mail_global = { on = "send", per = "global", max = 20000, window = "1h" },

    -- Five wrong codes lock the address: 15 minutes at first, then longer.
    verify = { on = "verify", per = "email", max = 5, window = "24h", counts = "failures",
      lock = { "15m", "1h", "6h", "24h" } },
    -- Bounds how many email addresses one IP address can try.
    verify_ip = { on = "verify", per = "ip", max = 50, window = "1h", counts = "failures" },
    -- 100 wrong codes in a row lock email codes for the account, each time for longer. A right code
    -- resets the count.
    hard = { on = "verify", per = "account", max = 100, counts = "consecutive_failures", lock = { "1h", "6h", "24h" } },
  },

  -- An address without an account gets the same answer as any other, and no mail.
  unknown_account = "conceal",

  -- The text of the mail, with {code}, {service} (from gateway.lua) and {minutes}.
  message = "{code} is your {service} verification code. It works for {minutes} minutes.",
}
