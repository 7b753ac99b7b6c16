-- Signing in, or creating an account if none exists: one page for both.
return flow "enter" {
  -- "existing": only for accounts that are there. "new": only for those that are not. "any": either.
  account = "any",

  -- Run in order; each must pass. A step names a provider, or any_of { "phone_otp", "google_oauth" }, and may have
  --   when = function(f) return f.client.new_device end    asked only where this is true
  --   skippable = true                                     the person may pass it over
  -- A second factor belongs into accounts.lua: here it would not protect accounts, since other flows open them too.
  steps = {
    any_of { "phone_otp", "google_oauth" },
  },

  -- How long the whole flow may take.
  lifetime = "15m",

  -- The session that it ends in: its longest life, and how long it may lie idle.
  session = { lifetime = "12h", idle = "1h" },

  -- Where people go when it is complete: new accounts always to `new`, others back to where they were, else to
  -- `returning`.
  next = { new = "/profile-setup", returning = "/home" },
}
