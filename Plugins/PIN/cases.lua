-- Cases of the flows that come with the PIN. They hold for any numbers in its policy. `moongate check` runs these
-- cases while gateway.lua configures the provider and config/tests/ has no pin.lua. All of these flows begin with a
-- session of the case's account.
return tests {
  case "a PIN is chosen, entered and changed" {
    phone "+919999999999", account {},
    flow "pin_set", enter { new_pin = "739154" }, expect { status = "complete" },
    flow "pin_unlock", enter { pin = "739154" }, expect { status = "complete" },
    flow "pin_change", enter { pin = "739154", new_pin = "402917" }, expect { status = "complete" },
    flow "pin_unlock", enter { pin = "402917" }, expect { status = "complete" },
    flow "pin_unlock", enter { pin = "739154" }, expect { status = "refused" },
  },

  case "one that is easy to guess is refused, and says nothing of the current one" {
    phone "+919999999999", account { pin = "739154" },
    flow "pin_change", enter { pin = "739155", new_pin = "123456" },
      expect { status = 422, code = "weak_pin", field = "new_pin" },
    flow "pin_change", enter { pin = "739154", new_pin = "999999" },
      expect { status = 422, code = "weak_pin", field = "new_pin" },
  },

  case "an answer that is not six digits is no attempt" {
    phone "+919999999999", account { has_pin = true },
    flow "pin_unlock", enter { pin = "12345" }, expect { status = 422, code = "invalid_input", field = "pin" },
    right(), expect { status = "complete" },
  },

  case "wrong PINs lock, and then the right one does not open" {
    phone "+919999999999", account { has_pin = true },
    flow "pin_unlock", wrong { until_locked = true }, expect { locked = true },
    right(), expect { locked = true },
  },

  case "wrong PINs of one flow count in every other" {
    phone "+919999999999", account { has_pin = true },
    flow "pin_unlock", wrong { until_locked = true },
    flow "pin_disable", right(), expect { status = "refused" },
    flow "pin_change", enter { pin = "739154", new_pin = "402917" }, expect { status = "refused" },
  },

  case "a forgotten PIN is replaced after a code, which ends its lock" {
    phone "+919999999999", email "asha@example.com", account { has_pin = true },
    flow "pin_unlock", wrong { until_locked = true },
    flow "pin_reset", send { until_sent = true }, right(), expect { status = "pending", step = "pin" },
    enter { new_pin = "402917" }, expect { status = "complete" },
    flow "pin_unlock", enter { pin = "402917" }, expect { status = "complete" },
  },

  case "without an address the code goes to the phone" {
    phone "+919999999999", account { has_pin = true },
    flow "pin_reset", send(), right(), enter { new_pin = "402917" }, expect { status = "complete" },
  },

  case "a PIN is turned off by entering it" {
    phone "+919999999999", account { has_pin = true },
    flow "pin_disable", right(), expect { status = "complete" },
    flow "pin_unlock", right(), expect { status = 409, code = "no_pin" },
  },

  case "one that is there is changed, not chosen again" {
    phone "+919999999999", account { has_pin = true },
    flow "pin_set", enter { new_pin = "402917" }, expect { status = 409, code = "already_set" },
  },

  case "only a signed-in user can enter a PIN" {
    flow "pin_unlock", expect { status = 401, code = "unauthenticated" },
  },
}
