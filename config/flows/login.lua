-- Sign-in to an existing account.
return flow "login" {
  -- "existing": signs in to an account. "new": creates an account. "any": either.
  account = "existing",

  -- Providers by which a user without an account gets one here. With any other provider, the answer
  -- is 404 account_not_found.
  registers = { "google_oauth" },

  -- All steps must pass, in this order. A step names a provider or any_of { "phone_otp", "pin" }.
  -- Optional fields of a step:
  --   when = function(f) return f.client.new_device end   the step is required only if this is true
  --   skippable = true                                    the user may skip the step
  -- Require second factors in accounts.lua. A step here protects only this flow, and other flows
  -- open the same account.
  steps = {
    -- A user who has lost the phone number signs in by a verified email address.
    any_of { "phone_otp", "email_code", "google_oauth", "passkey" },
  },

  -- The maximum duration of the flow.
  lifetime = "15m",

  -- The session: its maximum lifetime, and its maximum time without a request. The page offers
  -- "Keep me signed in" if you add remember = { lifetime = "90d", idle = "30d" }.
  session = { lifetime = "12h", idle = "1h" },

  -- The page after completion: `new` for new accounts. Other users return to the page that they
  -- asked for, or to `returning`.
  next = { new = "/profile-setup", returning = "/home" },
}
