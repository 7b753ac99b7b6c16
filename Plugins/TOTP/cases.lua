-- Cases of the flows that come with the authenticator app. They hold for any numbers in its policy.
-- `moongate check` runs these cases while gateway.lua configures the provider and config/tests/ has no totp.lua. The
-- person of a case has an app: it takes the key that a step shows, and right() enters what it shows then.
return tests {
  case "an app that is turned off opens nothing" {
    phone "+919999999999", account {},
    flow "totp_set", right(), wait "1m",
    flow "totp_disable", right(), expect { status = "complete" },
    wait "1m", flow "totp_disable", right(), expect { status = 401, code = "not_set_up" },
  },

  case "an app whose code was wrong is not set up" {
    phone "+919999999999", account {},
    flow "totp_set", enter { code = "000000" }, expect { status = 401, code = "invalid_code" },
    flow "totp_disable", enter { code = "000000" }, expect { status = 401, code = "not_set_up" },
  },

  case "an answer that is not six digits is no attempt" {
    phone "+919999999999", account {},
    flow "totp_set", enter { code = "12345" }, expect { status = 422, code = "invalid_input", field = "code" },
  },
}
