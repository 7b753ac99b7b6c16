-- Rules for every account, in all flows. A factor in a single flow does not protect the account, because any client
-- can begin another flow that opens it. Requirements of accounts are therefore set here.
return accounts {
  -- Steps that every session of an existing account requires. They follow the steps of the flow, as soon as the
  -- account is known. A step that has passed in the flow is not repeated. Each entry names a provider or
  -- any_of { "pin", "email_code" }, and can have two fields:
  --   when    such as function(f) return f.client.new_device end: the step applies only if it returns true. It gets
  --           the same facts as `when` of a flow.
  --   enroll  true: an account without this factor sets it up at sign-in. Without `enroll`, such an account is
  --           refused (403 denied), so let `when` check for the factor.
  sign_in = {
    -- Users who have set up an authenticator app enter its code at every sign-in.
    { "totp", when = function(f) return f.account.factors.totp end },
  },

  -- What people are offered to set up after a sign-in on the pages, with "Skip for now": a provider, how often at most,
  -- and perhaps `when`.
  -- offer = { { "passkey", every = "30d" } },

  -- How recently people must have proved something that the account already holds before they change a number, an
  -- address or a factor, or export or delete the account.
  change_within = "10m",

  -- How long a newly added number or address cannot reset a PIN, a password or another factor. It may sign in at once.
  recovery_delay = "24h",

  -- Groups of accounts, for routes with require = { group = "ops" }. `members()` is a list that you edit with
  -- `moongate group add ops asha@example.com`; a function computes the group from facts of the account. `claims` are
  -- further values that services receive about an account.
  -- groups = {
  --   ops   = members(),
  --   staff = function(f) return f.account.email_verified and ends_with(f.email.address, "@example.com") end,
  -- },
  -- claims = { plan = function(f) return f.account.age > duration("365d") and "veteran" or "new" end },

  -- Accounts that never verified anything are deleted after they were unused for this long.
  unverified_lifetime = "30d",
}
