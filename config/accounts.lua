-- Rules for all accounts. They apply in every flow that opens a session. A second factor belongs
-- here: in a single flow, it would not protect the account, because other flows open it too.
return accounts {
  -- "invited": only users with an invitation of `moongate invite create` get an account.
  -- { "invited", domains = { "example.com" } }: so do verified addresses of these domains.
  -- "closed": no flow creates an account, whatever it says. Only `moongate account import` does.
  registration = "open",

  -- Decides whether a flow may open a session, for every flow and entry point. Sessions go on.
  -- admit = function(f)
  --   if hour(f.now, "Asia/Kolkata") == 2 then return deny "maintenance" end
  --   return allow
  -- end,
  -- reasons = { maintenance = "Sign-in is closed from 2 to 3 in the night." },

  -- Additional steps at sign-in. They run after the steps of the flow, as soon as the account is
  -- known. Each entry names a provider or any_of { "pin", "email_code" }. Optional fields:
  --   when    a function of facts. The step is required only if it returns true.
  --   enroll  true: users who do not have the factor yet set it up at sign-in. Otherwise they are
  --           refused, so let `when` check for the factor.
  sign_in = {
    -- Users with an authenticator app enter its code at every sign-in.
    { "totp", when = function(f) return f.account.factors.totp end },
  },

  -- What the pages offer to set up after sign-in, with "Skip for now".
  -- offer = { { "passkey", every = "30d" } },

  -- How recent a proof must be before a user changes an identifier or a factor, or exports or
  -- deletes the account.
  change_within = "10m",

  -- How long a new phone number or email address, or a factor that was reset, only signs in: it does
  -- not count as a further factor, and authorises no change.
  recovery_delay = "24h",

  -- Groups, for routes with require = { group = "ops" }. members() is a list that you edit with
  -- `moongate group add ops asha@example.com`. A function computes the group from facts.
  -- `claims` are further values that services receive.
  -- groups = {
  --   ops   = members(),
  --   staff = function(f) return f.account.email_verified and ends_with(f.email.address, "@example.com") end,
  -- },
  -- claims = { plan = function(f) return f.account.age > duration("365d") and "veteran" or "new" end },

  -- Accounts that never verified an identifier are deleted after this time without use.
  unverified_lifetime = "30d",
}
