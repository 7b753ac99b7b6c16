-- Cases of accounts.lua. They must hold for any numbers in the policies. tests/by_phone.lua explains
-- the words. The user has an authenticator app after `totp_set` has shown its key. Each code works
-- only once, so the cases wait for the next one.
return tests {
  case "the app is asked for after a code to the number" {
    phone "+919999999999", account {},
    flow "totp_set", right(), wait "1m",
    flow "login", send(), right(), expect { status = "pending", step = "totp" },
    wrong(), expect { status = 401, code = "invalid_code" },
    right(), expect { status = "complete", next = "/home" },
  },

  case "the app is asked for by the flow that also registers" {
    phone "+919999999999", account {},
    flow "totp_set", right(), wait "1m",
    flow "enter", send(), right(), expect { status = "pending", step = "totp" },
    right(), expect { status = "complete", next = "/home" },
  },

  case "the app is asked for after a code to the address" {
    email "asha@example.com", account {},
    flow "totp_set", right(), wait "1m",
    flow "login", send(), right(), expect { status = "pending", step = "totp" },
    right(), expect { status = "complete" },
  },

  case "the app is asked for after the password" {
    email "asha@example.com", account { password = "correct horse" },
    flow "totp_set", right(), wait "1m",
    flow "login_password", enter { password = "correct horse" }, expect { status = "pending", step = "totp" },
    right(), expect { status = "complete" },
  },

  case "the app is asked for before a password reset and after it" {
    email "asha@example.com", account { password = "correct horse" },
    flow "totp_set", right(), wait "1m",
    flow "password_reset", send(), right(), enter { password = "another horse" },
      expect { status = "pending", step = "totp" },
    flow "login_password", enter { password = "another horse" }, expect { status = 401, code = "invalid_password" },
    flow "password_reset", send { until_sent = true }, right(), enter { password = "another horse" },
    wait "1m", right(), expect { status = "complete" },
    wait "1m", flow "login_password", enter { password = "another horse" },
      expect { status = "pending", step = "totp" },
    right(), expect { status = "complete" },
  },

  case "a user without an app is not asked for one" {
    phone "+919999999999", account {},
    flow "login", send(), right(), expect { status = "complete" },
    flow "enter", send { until_sent = true }, right(), expect { status = "complete" },
  },

  case "a new account is not asked for an app" {
    invited(), phone "+919999999999",
    flow "enter", send(), right(), expect { status = "complete", next = "/profile-setup" },
  },

  case "a disabled app is no longer asked for" {
    phone "+919999999999", account {},
    flow "totp_set", right(), wait "1m", flow "totp_disable", right(), expect { status = "complete" },
    flow "login", send(), right(), expect { status = "complete" },
  },
}
