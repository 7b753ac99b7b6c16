-- What must hold whatever the numbers of policies/totp.lua are; tests/phone_otp.lua says what each word means. A case has no authenticator app, so its
-- codes are wrong ones: what right ones do is tested in Plugins/TOTP.
return tests {
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
