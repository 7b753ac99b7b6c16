-- Phone codes: how long they live, how often they are sent, how many wrong ones are too many. What is not named here
-- keeps the provider's default; `limits` is replaced as a whole. Changes take effect within two seconds, for flows
-- under way too.
return policy "phone_otp" {
  -- length: 4 to 10 characters. alphabet: "digits", "letters" or "alphanumeric" (both without look-alikes).
  -- ttl: how long a code lives. A flow keeps what it began with.
  code = { length = 6, alphabet = "digits", ttl = "10m" },

  -- The wait before the first resend, the second, …; the last one repeats. It starts again after 15 minutes without a
  -- send.
  timers = { resend_after = { "60s", "120s" } },

  -- At most `max` events in any `window`, counted `per` key, `on` send, verify, begin or register.
  --   on       send: a code is sent; verify: a code is checked; begin: a step begins; register: an account is created
  --   per      phone, email, identifier, account, ip, network, country, prefix, device, flow, challenge, provider or
  --            global
  --   counts   "failures" (the default on verify), "all" (the default elsewhere) or "consecutive_failures" (no window)
  --   lock     how long to refuse after too many failures: a duration, or a list of increasing durations
  --   disable  true: a full limit disables the credential until an operator re-enables it. Attackers can cause this.
  -- All limits of an action are charged together before anything is sent or compared, or none is.
  limits = {
    -- One code and three resends.
    send = { on = "send", per = "phone", max = 4, window = "15m" },
    -- Ten a day: attackers cannot flood a phone, and earn little from a number that is paid for each message.
    send_day = { on = "send", per = "phone", max = 10, window = "24h" },
    -- One address cannot have messages sent to number after number.
    send_ip = { on = "send", per = "ip", max = 30, window = "1h" },

    -- Ceilings on what messages may cost, against attackers with many addresses and numbers. A device that has passed
    -- for an account before neither counts against them nor is refused by them when it asks for a code to that account:
    -- a flood affects only new devices.
    -- An office or a mobile carrier's exchange (an IPv4 /24, an IPv6 /48): ten busy addresses.
    send_network = { on = "send", per = "network", max = 300, window = "1h" },
    -- Numbers that share their first seven digits (10,000 to 100,000 of them). Those who earn by being sent to hold
    -- whole ranges.
    send_prefix = { on = "send", per = "prefix", max = 300, window = "1h" },
    -- All messages of an hour. Take your busiest hour times three. Global limits of one name are shared by all
    -- providers that have it.
    sms_global = { on = "send", per = "global", max = 5000, window = "1h" },

    -- Five wrong codes lock the number: a quarter of an hour first, then longer.
    verify = { on = "verify", per = "phone", max = 5, window = "24h", counts = "failures",
      lock = { "15m", "1h", "6h", "24h" } },
    -- A hundred wrong codes without one right code lock the account's phone codes, each time for longer. A right code
    -- resets the count.
    hard = { on = "verify", per = "account", max = 100, counts = "consecutive_failures", lock = { "1h", "6h", "24h" } },
  },

  -- For an unknown number, "reveal" answers 404; "conceal" answers as for any other number and sends nothing.
  unknown_account = "reveal",

  -- The text of the SMS. {code}, {service} (from gateway.lua) and {minutes} are filled in.
  message = "{code} is your {service} verification code",

  -- Two functions may be added, called with facts before a code is sent and before one is compared:
  --   send   = function(f) if f.phone.country ~= "IN" then return deny "country_not_served" end return allow end,
  --   verify = function(f) if f.client.network_changed then return require_also "pin" end return allow end,
  -- and what people read where they deny:
  --   reasons = { country_not_served = "We do not serve this country yet." },
}
