-- These cases must hold for any numbers in policies/email_code.lua. tests/by_phone.lua explains the
-- words. Flows that change the account (verify_email, change_email, change_phone, join_phone, step_up)
-- begin with a session of that account.
return tests {
  case "a verified address signs in" {
    email "asha@example.com", account { phone = "+919999999999" },
    flow "login", send(), expect { status = "pending", messages = 1 },
    right(), expect { status = "complete" },
  },

  case "upper case is the same address" {
    email "asha@example.com", account { phone = "+919999999999" },
    flow "login", email "Asha@Example.COM", send(), right(), expect { status = "complete" },
  },

  case "an unverified address cannot sign in" {
    email "asha@example.com", account { phone = "+919999999999", email_verified = false },
    flow "login", send(), expect { messages = 0 },
  },

  case "an unknown address is answered like any other" {
    flow "login", email "nobody@example.com", send(), expect { status = "pending", messages = 0 },
    wrong(), expect { status = "refused" },
  },

  case "wrong codes lock the address, and then the right code is refused" {
    email "asha@example.com", account { phone = "+919999999999" },
    flow "login", send(), wrong { until_locked = true }, expect { locked = true },
    right(), expect { locked = true },
  },

  case "an invalid address is refused" {
    flow "login", provider "email_code", email "no address", send(),
    expect { status = 422, code = "invalid_email", field = "email", messages = 0 },
  },

  case "a claimed address is verified by its own code" {
    phone "+919999999999", email "asha@example.com", account { email_verified = false },
    flow "verify_email", send(), right(), expect { status = "complete" },
    flow "login", send { until_sent = true }, right(), expect { status = "complete" },
  },

  case "verifying an address is optional" {
    email "asha@example.com", account { phone = "+919999999999", email_verified = false },
    flow "verify_email", skip(), expect { status = "complete" },
  },

  case "a new address replaces the old one" {
    phone "+919999999999", account { email = "old@example.com" },
    flow "change_email", email "new@example.com", send(), right(), expect { status = "complete" },
    flow "login", email "new@example.com", send { until_sent = true }, right(), expect { status = "complete" },
  },

  case "a user without the old number signs in by email and changes it" {
    email "asha@example.com", account { phone = "+919999999999" },
    flow "login", send(), right(), expect { status = "complete" },
    flow "change_phone", phone "+918888888888", send(), right(), expect { status = "complete" },
    flow "login", provider "phone_otp", send { until_sent = true }, right(), expect { status = "complete" },
  },

  case "a number is added once" {
    email "asha@example.com", account {},
    flow "join_phone", phone "+919999999999", send(), right(), expect { status = "complete" },
    flow "join_phone", send(), expect { status = 409, code = "already_set" },
  },

  case "a step-up uses only what the account holds" {
    phone "+919999999999", account {},
    flow "step_up", send(), right(), expect { status = "complete" },
    flow "step_up", phone "+918888888888", send(), expect { status = 403, code = "denied" },
  },

  case "a flow for account changes requires a session" {
    flow "change_email", expect { status = 401, code = "unauthenticated" },
  },
}
