-- Connect the account with an identity of the directory, which signs in to it from then on. The flow begins with a
-- session that has recently proved something that the account holds (else 403 step_up_required). The identity is added
-- and nothing that comes with it, such as its address. One that belongs to another account is refused and stays there.
return flow "ldap_join" {
  purpose = "join",
  identifier = "federated",
  account = "existing",

  steps = {
    { "ldap" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
