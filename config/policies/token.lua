-- Tokens of programs. A token has 256 random bits and cannot be guessed. The limit bounds the load
-- of a broken or hostile client. It counts per IP address, so it affects neither valid tokens from
-- other IP addresses nor users who sign in from this one.
return policy "token" {
  limits = {
    wrong = { on = "verify", per = "ip", max = 60, window = "1h", counts = "failures", lock = "15m" },
  },
}
