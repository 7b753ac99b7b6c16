-- Codes of authenticator apps: rate limits. These are the defaults. Three of a million codes are
-- valid at any time (the current one and its neighbors), so locks are longer than those of phone
-- codes.
return policy "totp" {
  limits = {
    -- Five wrong codes lock for 30 minutes, then for longer.
    verify = { on = "verify", per = "account", max = 5, window = "24h", counts = "failures",
      lock = { "30m", "3h", "12h", "24h" } },
    -- Bounds how many accounts one IP address can try.
    verify_ip = { on = "verify", per = "ip", max = 100, window = "1h", counts = "failures" },
    -- 100 wrong codes in a row lock it, each time for longer. A right code resets the count.
    hard = { on = "verify", per = "account", max = 100, counts = "consecutive_failures", lock = { "1h", "6h", "24h" } },
  },

  -- The step does not reveal whether an account has an authenticator app.
  unknown_account = "conceal",
}
