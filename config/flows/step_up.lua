-- Proving once more that it is you, where a route asks for it (`require` in routes.lua). It is begun with a session;
-- that session keeps its end and gets a new token and what was proved here. A code goes to what the account holds
-- verified, and nowhere else. Of the choices each person is offered those that they have.
return flow "step_up" {
  purpose = "step_up",
  account = "existing",

  steps = {
    any_of { "phone_otp", "email_code", "pin", "totp", "passkey", "password", "google_oauth" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
