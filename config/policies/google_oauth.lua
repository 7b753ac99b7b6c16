-- Sign-in by Google. There is no secret to guess, so the limits only prevent floods. A field that
-- is missing here keeps the default of the provider. `limits` replaces all default limits.
return policy "google_oauth" {
  limits = {
    -- Bounds how many sign-ins one IP address can begin.
    begin_ip = { on = "begin", per = "ip", max = 60, window = "1h" },
    -- The following limits count refused responses of Google. "Cancel" does not count.
    -- Bounds how many requests to Google one IP address can cause.
    verify_ip = { on = "verify", per = "ip", max = 60, window = "1h", counts = "failures" },
    -- After five failures, the user must start the sign-in again.
    verify_flow = { on = "verify", per = "flow", max = 5, window = "15m", counts = "failures" },
  },

  -- Optional function of facts, called before the response of Google is verified:
  --   verify = function(f) if f.client.network_changed then return deny "network_changed" end return allow end,
}
