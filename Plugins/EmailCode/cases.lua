-- Cases of the flows that come with codes by mail. They hold for any numbers in its policy. `moongate check` runs
-- these cases while gateway.lua configures the provider and config/tests/ has no email_code.lua. All of these flows
-- begin with a session of the case's account.
return tests {
  case "a claimed address is verified by its own code, once" {
    phone "+919999999999", email "asha@example.com", account { email_verified = false },
    flow "verify_email", send(), right(), expect { status = "complete" },
    flow "verify_email", expect { status = 409, code = "already_set" },
  },

  case "verifying an address is optional" {
    email "asha@example.com", account { phone = "+919999999999", email_verified = false },
    flow "verify_email", skip(), expect { status = "complete" },
  },

  case "a new address replaces the old one" {
    phone "+919999999999", account { email = "old@example.com" },
    flow "change_email", email "new@example.com", send(), right(), expect { status = "complete" },
  },

  case "an account's own flow needs a session" {
    flow "change_email", expect { status = 401, code = "unauthenticated" },
  },
}
