-- Passwords: rate limits. A field that is missing here keeps the default of the provider. `limits`
-- replaces all default limits. policies/phone_otp.lua explains the fields. A password has 8 to
-- 1,024 characters. The provider refuses weak passwords.
return policy "password" {
  limits = {
    -- Bounds how many sign-ins one IP address can begin.
    begin_ip = { on = "begin", per = "ip", max = 60, window = "1h" },

    -- Registrations with a password. Each one costs a hash, so it is counted before hashing.
    -- One IP address, such as a family or a small office.
    register_ip = { on = "register", per = "ip", max = 10, window = "1h" },
    -- One network (IPv4 /24, IPv6 /48).
    register_network = { on = "register", per = "network", max = 200, window = "24h" },
    -- All registrations. A distributed flood costs at most this many hashes and rows. Existing
    -- users are not affected.
    register_global = { on = "register", per = "global", max = 5000, window = "1h" },

    -- Five wrong passwords lock the email address, whether or not it has an account: 15 minutes at
    -- first, then longer.
    verify = { on = "verify", per = "email", max = 5, window = "24h", counts = "failures",
      lock = { "15m", "1h", "6h", "24h" } },
    -- The same for the account, in flows that ask for no email address.
    account = { on = "verify", per = "account", max = 5, window = "24h", counts = "failures",
      lock = { "15m", "1h", "6h", "24h" } },
    -- Bounds how many email addresses one IP address can try.
    verify_ip = { on = "verify", per = "ip", max = 100, window = "1h", counts = "failures" },
    -- 100 wrong passwords in a row lock the password of the account, each time for longer. The
    -- right password resets the count.
    hard = { on = "verify", per = "account", max = 100, counts = "consecutive_failures", lock = { "1h", "6h", "24h" } },
  },

  -- For an email address without an account, "conceal" answers as for a wrong password, after the
  -- same work. "reveal" answers 404.
  unknown_account = "conceal",
}
