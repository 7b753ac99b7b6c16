-- What holds of the flow that comes with Google, whatever the numbers of its policy are. `moongate check` plays these
-- cases while gateway.lua configures the provider and config/tests/ has no google_oauth.lua. A case cannot go to
-- another site.
return tests {
  case "a site is connected only by who is signed in" {
    flow "google_oauth_join", expect { status = 401, code = "unauthenticated" },
  },

  case "a user with a recent proof can connect one" {
    phone "+919999999999", account {},
    flow "google_oauth_join", expect { status = "pending" },
  },
}
