-- Cases of the flow that comes with codes by SMS. They hold for any numbers in its policy. `moongate check` runs
-- these cases while gateway.lua configures the provider and config/tests/ has no phone_otp.lua.
return tests {
  case "a new number replaces the old one" {
    phone "+919999999999", account {},
    flow "change_phone", phone "+918888888888", send(), right(), expect { status = "complete" },
  },

  case "a wrong code changes nothing" {
    phone "+919999999999", account {},
    flow "change_phone", phone "+918888888888", send(), wrong(), expect { status = "refused" },
  },

  case "an account's own flow needs a session" {
    flow "change_phone", expect { status = 401, code = "unauthenticated" },
  },
}
