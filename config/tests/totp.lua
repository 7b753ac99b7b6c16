-- What must hold whatever the numbers of policies/totp.lua are; tests/phone_otp.lua says what each word means. The person of a case has an authenticator
-- app: it takes the key that a step shows, and right() enters what it shows then.
return tests {
  case "an app is set up by its first code, and opens what asks for it" {
    phone "+919999999999", account {},
    flow "totp_set", right(), expect { status = "complete" },
    flow "totp_set", right(), expect { code = "already_set" },
    wait "1m", flow "step_up", provider "totp", right(), expect { status = "complete" },
  },

  case "a code is good once" {
    phone "+919999999999", account {},
    flow "totp_set", right(), wait "1m",
    flow "step_up", provider "totp", right(), expect { status = "complete" },
    flow "step_up", provider "totp", right(), expect { status = 401, code = "code_used" },
    wait "30s", right(), expect { status = "complete" },
  },

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

  case "what is not six digits is no try" {
    phone "+919999999999", account {},
    flow "totp_set", enter { code = "12345" }, expect { status = 422, code = "invalid_input", field = "code" },
  },

  case "whoever proved nothing for a while proves something before setting one up" {
    phone "+919999999999", account {},
    flow "step_up", wait "11m", flow "totp_set", expect { status = 403, code = "step_up_required" },
  },
}
