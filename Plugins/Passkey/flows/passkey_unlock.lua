-- Prove a passkey within a session, such as where a route asks for it.
return flow "passkey_unlock" {
  purpose = "unlock",
  provider = "passkey",
  account = "existing",

  steps = {
    { "passkey" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
