-- Sign-in by Google. There is no secret here to be guessed: the limits are against floods. What is not named here keeps
-- the provider's default; `limits` is replaced as a whole. Changes take effect within two seconds, for flows under way
-- too.
return policy "google_oauth" {
  limits = {
    -- One address cannot begin sign-ins without limit, even if it completes none.
    begin_ip = { on = "begin", per = "ip", max = 60, window = "1h" },
    -- Only what came back from Google and was refused counts from here on; "Cancel" is not counted.
    -- One address cannot have us ask Google again and again.
    verify_ip = { on = "verify", per = "ip", max = 60, window = "1h", counts = "failures" },
    -- A sign-in that keeps failing has to be started again.
    verify_flow = { on = "verify", per = "flow", max = 5, window = "15m", counts = "failures" },
  },

  -- It sends no codes. One function may be added, called with facts before what came back is judged:
  --   verify = function(f) if f.client.network_changed then return deny "network_changed" end return allow end,
}
