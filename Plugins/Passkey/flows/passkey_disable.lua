-- Remove a passkey. A passkey of the account proves who asks.
return flow "passkey_disable" {
  purpose = "disable",
  provider = "passkey",
  account = "existing",

  steps = {
    { "passkey" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
