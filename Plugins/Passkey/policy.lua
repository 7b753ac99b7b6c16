-- The defaults of passkeys. The operator's config/policies/passkey.lua replaces the fields that it names (`limits` as a
-- whole). A signature cannot be guessed: the limits bound the cost of wrong answers and the
-- attempts on a found device.
return policy "passkey" {
  limits = {
    verify = { on = "verify", per = "account", max = 20,  window = "1h", counts = "failures",
      lock = { "5m", "30m", "3h" } },
    ip     = { on = "verify", per = "ip",      max = 100, window = "1h", counts = "failures" },
    begin  = { on = "begin",  per = "ip",      max = 600, window = "1h" },
  },
  unknown_account = "conceal",
}
