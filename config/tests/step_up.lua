-- Step-ups and factors. These cases must hold for any numbers in the policies. tests/by_phone.lua
-- explains the words. The user has an authenticator app after `totp_set` has shown its key.
return tests {
  case "setting a PIN requires a recent proof" {
    phone "+919999999999", account {},
    flow "step_up", wait "11m", flow "pin_set", expect { status = 403, code = "step_up_required" },
    flow "step_up", send(), right(), flow "pin_set", enter { new_pin = "402917" }, expect { status = "complete" },
  },

  case "a step-up by PIN" {
    phone "+919999999999", account { pin = "739154" },
    flow "step_up", provider "pin", right(), expect { status = "complete" },
  },

  case "an app is set up by its first code, and works for a step-up" {
    phone "+919999999999", account {},
    flow "totp_set", right(), expect { status = "complete" },
    flow "totp_set", right(), expect { code = "already_set" },
    wait "1m", flow "step_up", provider "totp", right(), expect { status = "complete" },
  },

  case "a code of the app works only once" {
    phone "+919999999999", account {},
    flow "totp_set", right(), wait "1m",
    flow "step_up", provider "totp", right(), expect { status = "complete" },
    flow "step_up", provider "totp", right(), expect { status = 401, code = "code_used" },
    wait "30s", right(), expect { status = "complete" },
  },

  case "setting up an app requires a recent proof" {
    phone "+919999999999", account {},
    flow "step_up", wait "11m", flow "totp_set", expect { status = 403, code = "step_up_required" },
  },
}
