-- Codes by SMS: lifetime, resends, rate limits. A field that is missing here keeps the default of
-- the provider. `limits` replaces all default limits. Changes take effect within two seconds, also
-- for sign-ins in progress.
return policy "phone_otp" {
  -- length: 4 to 10 characters. alphabet: "digits", "letters" or "alphanumeric" (the last two omit
  -- characters that look alike). ttl: lifetime of a code. A sign-in in progress keeps its values.
  code = { length = 6, alphabet = "digits", ttl = "10m" },

  -- The wait before the first resend, the second, and so on. The last value repeats. The sequence
  -- restarts after 15 minutes without a send.
  timers = { resend_after = { "60s", "120s" } },

  -- A limit allows at most `max` events in any `window`. Fields:
  --   on       send (a code is sent), verify (a code is checked), begin (a step begins) or register
  --            (an account is created)
  --   per      what is counted separately: phone, email, identifier, account, ip, network,
  --            client_country, asn, country, prefix, device, flow, challenge, provider or global
  --   counts   "failures" (default on verify), "all" (default elsewhere) or
  --            "consecutive_failures" (without a window)
  --   lock     how long to refuse after too many failures: a duration, or a list of increasing ones
  --   disable  true: reaching the limit disables the credential until an operator re-enables it.
  --            Attackers can cause this.
  -- All limits of an action are charged together, before a code is sent or compared.
  limits = {
    -- One code and three resends.
    send = { on = "send", per = "phone", max = 4, window = "15m" },
    -- Ten a day, so that attackers cannot flood a phone, and earn little from a premium number.
    send_day = { on = "send", per = "phone", max = 10, window = "24h" },
    -- Bounds how many numbers one IP address can send messages to.
    send_ip = { on = "send", per = "ip", max = 30, window = "1h" },

    -- Ceilings on cost, against attackers with many IP addresses and numbers. They do not apply to
    -- a device that has signed in to the account before, so a flood affects only new devices.
    -- One network (IPv4 /24, IPv6 /48), such as an office: as much as ten busy IP addresses.
    send_network = { on = "send", per = "network", max = 300, window = "1h" },
    -- Numbers that share their first seven digits. Toll fraudsters control whole ranges of numbers.
    send_prefix = { on = "send", per = "prefix", max = 300, window = "1h" },
    -- All messages of an hour. Set it to three times your busiest hour. Providers with a global
    -- limit of the same name share it.
    sms_global = { on = "send", per = "global", max = 5000, window = "1h" },

    -- Five wrong codes lock the number: 15 minutes at first, then longer.
    verify = { on = "verify", per = "phone", max = 5, window = "24h", counts = "failures",
      lock = { "15m", "1h", "6h", "24h" } },
    -- 100 wrong codes in a row lock phone codes for the account, each time for longer. A right code
    -- resets the count.
    hard = { on = "verify", per = "account", max = 100, counts = "consecutive_failures", lock = { "1h", "6h", "24h" } },
  },

  -- For a number without an account, "reveal" answers 404. "conceal" answers as for any other
  -- number, and sends nothing.
  unknown_account = "reveal",

  -- The text of the SMS, with {code}, {service} (from gateway.lua) and {minutes}.
  message = "{code} is your {service} verification code",

  -- Optional functions of facts, called before a code is sent and before a code is compared:
  --   send   = function(f) if f.phone.country ~= "IN" then return deny "country_not_served" end return allow end,
  --   verify = function(f) if f.client.network_changed then return require_also "pin" end return allow end,
  -- The texts that users see when a function denies:
  --   reasons = { country_not_served = "We do not serve this country yet." },
}
