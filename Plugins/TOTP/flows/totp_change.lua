-- Replace the recovery codes by new ones. A code of the app proves who asks.
return flow "totp_change" {
  purpose = "change",
  provider = "totp",
  account = "existing",

  steps = {
    { "totp" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
