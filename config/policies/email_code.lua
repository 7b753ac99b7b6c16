-- Email codes: how long they live, how often they are sent, how many wrong ones are too many. What is not named here
-- keeps the provider's default; `limits` is replaced as a whole. policies/phone_otp.lua says what each word means.
return policy "email_code" {
  -- Mail is slower than SMS: a quarter of an hour.
  code = { length = 6, alphabet = "digits", ttl = "15m" },

  timers = { resend_after = { "60s" } },

  limits = {
    -- One code and three resends.
    send = { on = "send", per = "email", max = 4, window = "15m" },
    -- Ten a day, so that attackers cannot flood a mailbox.
    send_day = { on = "send", per = "email", max = 10, window = "24h" },
    -- One network address cannot have mail sent to address after address.
    send_ip = { on = "send", per = "ip", max = 30, window = "1h" },

    -- Ceilings, so that a flood does not cost you your mail server's good name. A device that has passed for an account
    -- before neither counts against them nor is refused by them when it asks for a code to that account.
    -- An IPv4 /24 or an IPv6 /48: ten busy addresses.
    send_network = { on = "send", per = "network", max = 300, window = "1h" },
    -- All mails of an hour. Take your busiest hour times three.
    mail_global = { on = "send", per = "global", max = 20000, window = "1h" },

    -- Five wrong codes lock the address: a quarter of an hour first, then longer.
    verify = { on = "verify", per = "email", max = 5, window = "24h", counts = "failures",
      lock = { "15m", "1h", "6h", "24h" } },
    -- One network address cannot try address after address.
    verify_ip = { on = "verify", per = "ip", max = 50, window = "1h", counts = "failures" },
    -- A hundred wrong codes without one right code lock the account's email codes, each time for longer. A right code
    -- resets the count.
    hard = { on = "verify", per = "account", max = 100, counts = "consecutive_failures", lock = { "1h", "6h", "24h" } },
  },

  -- For an unknown address, the answer is the same as for any other, and no mail is sent.
  unknown_account = "conceal",

  -- The text of the mail. {code}, {service} (from gateway.lua) and {minutes} are filled in.
  message = "{code} is your {service} verification code. It works for {minutes} minutes.",
}
