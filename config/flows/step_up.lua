-- A further proof within a session, if a route requires it (`require` in routes.lua) or before a
-- change of the account. The session keeps its end and gets a new token. Codes go only to verified
-- identifiers of the account. The pages offer the steps that the account can use.
return flow "step_up" {
  purpose = "step_up",
  account = "existing",

  steps = {
    any_of { "phone_otp", "email_code", "pin", "totp", "passkey", "password", "google_oauth" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
