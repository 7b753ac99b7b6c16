-- Verify the email address that the account of the session claims. A code goes to that address.
return flow "verify_email" {
  purpose = "verify",
  identifier = "email",
  account = "existing",

  -- Optional: the page offers "Skip for now".
  steps = {
    { "email_code", skippable = true },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
