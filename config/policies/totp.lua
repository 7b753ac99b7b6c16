-- How the authenticator app behaves. These are the defaults, spelled out: change a number, save, and it holds at the
-- next try. Three codes of a million are right at any time (the current one and its neighbours), so locks are longer
-- here than a phone code's.
return policy "totp" {
  limits = {
    -- Five wrong codes lock for half an hour; each further lock is longer.
    verify = { on = "verify", per = "account", max = 5, window = "24h", counts = "failures",
      lock = { "30m", "3h", "12h", "24h" } },
    -- One network address cannot try account after account.
    verify_ip = { on = "verify", per = "ip", max = 100, window = "1h", counts = "failures" },
    -- A hundred in a row without a success lock it, each time for longer. A right code resets the count.
    hard = { on = "verify", per = "account", max = 100, counts = "consecutive_failures", lock = { "1h", "6h", "24h" } },
  },

  -- The step does not reveal whether a user has an app.
  unknown_account = "conceal",
}
