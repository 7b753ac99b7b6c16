-- New recovery codes in place of the old ones, by a code of the app. The name says what the flow does: it is begun with a session.
return flow "totp_change" {
  account = "existing",

  steps = {
    { "totp" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
