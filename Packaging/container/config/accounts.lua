-- Rules for every account, in all flows.
return accounts {
  -- People who have set up an authenticator app enter its code at every sign-in.
  sign_in = {
    { "totp", when = function(f) return f.account.factors.totp end },
  },

  -- What people are offered to set up after a sign-in, with "Skip for now".
  offer = { { "passkey", every = "30d" } },

  -- How recently people must have proved something that the account already holds before they change a number, an
  -- address or a factor.
  change_within = "10m",

  -- How long a new number or address, or a PIN or password that was reset, only signs in. It does not count as a
  -- further factor, and authorises no change.
  recovery_delay = "24h",

  -- Accounts that never verified anything are deleted after they were unused for this long.
  unverified_lifetime = "30d",
}
