// The default policy of a provider that is begun, in whatever language.

extension ProviderTemplate {
  static let codePolicy = """
    -- The defaults of @NAME@. An operator's policies/@NAME@.lua replaces the fields that it names (`limits` as a whole).
    return policy "@NAME@" {
      code   = { length = 6, alphabet = "digits", ttl = "10m" },
      timers = { resend_after = { "60s" } },
      limits = {
        send    = { on = "send",   per = "email", max = 4,  window = "15m" },
        send_day = { on = "send",  per = "email", max = 10, window = "24h" },
        send_ip = { on = "send",   per = "ip",    max = 30, window = "1h" },
        verify  = { on = "verify", per = "email", max = 5,  window = "24h", counts = "failures", lock = { "15m", "1h", "6h", "24h" } },
      },
      unknown_account = "conceal",
      message = "{code} is your {service} code. It works for {minutes} minutes.",
    }

    """

  static let fullPolicy = """
    -- The defaults of @NAME@. An operator's policies/@NAME@.lua replaces the fields that it names (`limits` as a whole).
    return policy "@NAME@" {
      limits = {
        verify = { on = "verify", per = "account", max = 5, window = "24h", counts = "failures", lock = { "15m", "1h", "6h", "24h" } },
      },
      unknown_account = "conceal",
    }

    """
}
