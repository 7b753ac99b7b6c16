-- Cases of the flow that comes with a directory. They hold for any numbers in its policy. `moongate check` runs these
-- cases while gateway.lua configures the provider and config/tests/ has no ldap.lua. A case asks no directory.
return tests {
  case "only a signed-in user can connect a directory" {
    flow "ldap_join", expect { status = 401, code = "unauthenticated" },
  },

  case "a user with a recent proof can connect one" {
    phone "+919999999999", account {},
    flow "ldap_join", expect { status = "pending" },
  },
}
