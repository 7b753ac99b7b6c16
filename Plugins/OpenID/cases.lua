-- Cases of the flow that comes with Google. They hold for any numbers in its policy. `moongate check` runs these
-- cases while gateway.lua configures the provider and config/tests/ has no google_oauth.lua. A case cannot go to
-- another site.
return tests {
  case "only a signed-in user can connect a site" {
    flow "google_oauth_join", expect { status = 401, code = "unauthenticated" },
  },

  case "a user with a recent proof can connect one" {
    phone "+919999999999", account {},
    flow "google_oauth_join", expect { status = "pending" },
  },
}
