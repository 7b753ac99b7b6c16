-- Cases of the flows that come with passkeys. They hold for any numbers in their policy. `moongate check` runs
-- these cases while gateway.lua configures the provider and config/tests/ has no passkey.lua. The person of a case has
-- a device: right() uses it, and wrong() spoils its answer.
return tests {
  case "a passkey that was removed opens nothing" {
    phone "+919999999999", account {},
    flow "passkey_set", right(), expect { status = "complete" },
    flow "passkey_unlock", right(), expect { status = "complete" },
    flow "passkey_disable", right(), expect { status = "complete" },
    flow "passkey_unlock", right(), expect { status = 401, code = "no_passkey" },
  },

  case "an answer that does not verify adds no passkey" {
    phone "+919999999999", account {},
    flow "passkey_set", wrong(), expect { status = 401, code = "invalid_passkey" },
    flow "passkey_unlock", right(), expect { status = 401, code = "no_passkey" },
  },

  case "a signature that does not verify is refused" {
    phone "+919999999999", account {},
    flow "passkey_set", right(),
    flow "passkey_unlock", wrong(), expect { status = 401, code = "invalid_passkey" },
    right(), expect { status = "complete" },
  },
}
