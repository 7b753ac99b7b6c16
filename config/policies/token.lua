-- Tokens of programs: how many wrong ones are too many. A token is 256 random bits, which nobody guesses: the limit
-- keeps a broken or hostile client from costing anything. It counts by address, so it cannot lock out a right token
-- that comes from another one, nor people at that address.
return policy "token" {
  limits = {
    wrong = { on = "verify", per = "ip", max = 60, window = "1h", counts = "failures", lock = "15m" },
  },
}
