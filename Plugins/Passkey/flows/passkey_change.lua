-- Rename a passkey: the one that is used for it.
return flow "passkey_change" {
  purpose = "change",
  provider = "passkey",
  account = "existing",

  steps = {
    { "passkey" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
