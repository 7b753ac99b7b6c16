-- Connect the account with a Google identity, which signs in to it from then on. The flow begins with a session that
-- has recently proved something that the account holds (else 403 step_up_required). The identity is added and nothing
-- that comes with it, such as its address. One that belongs to another account is refused and stays there.
return flow "google_oauth_join" {
  purpose = "join",
  identifier = "federated",
  account = "existing",

  steps = {
    { "google_oauth" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
