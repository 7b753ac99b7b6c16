-- Passkeys. Signatures cannot be guessed, so the limits bound the load of wrong ones, and the
-- attempts on a stolen device.
return policy "passkey" {
  limits = {
    verify = { on = "verify", per = "account", max = 20,  window = "1h", counts = "failures",
      lock = { "5m", "30m", "3h" } },
    ip     = { on = "verify", per = "ip",      max = 100, window = "1h", counts = "failures" },
    begin  = { on = "begin",  per = "ip",      max = 600, window = "1h" },
  },
  unknown_account = "conceal",
}
