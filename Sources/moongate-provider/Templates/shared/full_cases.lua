-- Cases of the flows that new_provider ships. They hold for any numbers in its policy. `moongate check` runs
-- these cases while gateway.lua configures the provider and config/tests/ has no new_provider.lua.
return tests {
  case "only a signed-in user can choose or remove a phrase" {
    flow "new_provider_set", expect { status = 401, code = "unauthenticated" },
    flow "new_provider_disable", expect { status = 401, code = "unauthenticated" },
  },

  case "an account without a phrase may choose one" {
    phone "+919999999999", account {},
    flow "new_provider_set", expect { status = "pending" },
  },

  case "a wrong phrase removes nothing" {
    phone "+919999999999", account {},
    flow "new_provider_disable", wrong(), expect { status = "refused" },
  },
}
