-- Tokens of programs: how many wrong ones are too many. A token has 256 random bits and cannot be guessed. The limit
-- bounds the cost of a broken or hostile client. It counts by address, so it cannot lock out a right token
-- that comes from another one, nor people at that address.
return policy "token" {
  limits = {
    wrong = { on = "verify", per = "ip", max = 60, window = "1h", counts = "failures", lock = "15m" },
  },
}
