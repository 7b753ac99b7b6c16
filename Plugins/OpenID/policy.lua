-- The defaults of signing in by Google. The operator's config/policies/google_oauth.lua replaces the fields that it
-- names (`limits` as a whole). There is no secret here to be guessed: the limits are against floods.
return policy "google_oauth" {
  limits = {
    begin_ip    = { on = "begin",  per = "ip",   max = 60, window = "1h" },
    verify_ip   = { on = "verify", per = "ip",   max = 60, window = "1h", counts = "failures" },
    verify_flow = { on = "verify", per = "flow", max = 5,  window = "15m", counts = "failures" },
  },
  unknown_account = "reveal",
}
