-- These cases must hold for any numbers in policies/password.lua. tests/by_phone.lua explains the
-- words. `right()` and `wrong()` enter the account's password, or another one.
return tests {
  case "registering and signing in" {
    invited(), email "asha@example.com",
    flow "register_email", enter { password = "correct horse", first_name = "Asha", last_name = "Rao" },
    expect { status = "pending", step = "email_code" }, skip(), expect { status = "complete", next = "/profile-setup" },
    flow "login_password", enter { password = "correct horse" }, expect { status = "complete" },
  },

  case "letter case matters in the password, not in the address" {
    email "asha@example.com", account { password = "correct horse" },
    flow "login_password", email "Asha@Example.COM", enter { password = "correct horse" },
      expect { status = "complete" },
    flow "login_password", enter { password = "Correct horse" }, expect { status = "refused" },
  },

  case "a password that is easy to guess is refused" {
    invited(), email "asha@example.com",
    flow "register_email", enter { password = "password1", first_name = "Asha", last_name = "Rao" },
    expect { status = 422, code = "weak_password", field = "password" },
    enter { password = "short", first_name = "Asha", last_name = "Rao" },
      expect { status = 422, code = "weak_password", field = "password" },
    enter { password = "asha@example.com", first_name = "Asha", last_name = "Rao" },
    expect { status = 422, code = "weak_password", field = "password" },
  },

  case "wrong passwords lock, and then the right password is refused" {
    email "asha@example.com", account { password = "correct horse" },
    flow "login_password", wrong { until_locked = true }, expect { locked = true },
    right(), expect { locked = true },
    flow "login_password", right(), expect { status = "refused" },
  },

  case "an unknown address is answered like a wrong password, and locks like one" {
    flow "login_password", email "nobody@example.com", wrong(), expect { status = "refused", messages = 0 },
    wrong { until_locked = true }, expect { locked = true },
  },

  case "a forgotten password is replaced after a code" {
    email "asha@example.com", account { password = "correct horse" },
    flow "password_reset", send(), right(), expect { status = "pending", step = "password" },
    enter { password = "another horse" }, expect { status = "complete" },
    flow "login_password", enter { password = "another horse" }, expect { status = "complete" },
    flow "login_password", enter { password = "correct horse" }, expect { status = "refused" },
  },

  case "a user with only a password steps up with it" {
    email "asha@example.com", account { email_verified = false, password = "correct horse" },
    flow "step_up", right(), expect { status = "complete" },
  },

  case "a reset for an unknown address sends nothing and reveals nothing" {
    flow "password_reset", email "nobody@example.com", send(), expect { status = "pending", messages = 0 },
  },

  case "an address belongs to the account that verifies it" {
    email "asha@example.com", account { phone = "+918888888888", email_verified = false, password = "correct horse" },
    flow "login_password", right(), expect { status = "complete" },
    invited(), flow "register_email", enter { password = "another horse", first_name = "Asha", last_name = "Rao" },
    send(), right(), expect { status = "complete" },
    flow "login_password", enter { password = "correct horse" }, expect { status = "refused" },
  },
}
