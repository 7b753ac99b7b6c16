-- Verifying the email address of someone who is signed in: a code goes to the address that their account claims.
-- The name says what the flow does: it is begun with a session, and completing it marks the address as proved.
return flow "verify_email" {
  account = "existing",

  -- Nobody has to: "Skip for now".
  steps = {
    { "email_code", skippable = true },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
