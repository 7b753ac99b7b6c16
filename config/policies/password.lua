-- Passwords: how many wrong ones are too many. What is not named here keeps the provider's default; `limits` is
-- replaced as a whole.
-- policies/phone_otp.lua says what each word means. A password has 8 to 1,024 characters; which ones are too easy to
-- guess is the provider's to say.
return policy "password" {
  limits = {
    -- One network address cannot begin steps without limit, even if it completes none.
    begin_ip = { on = "begin", per = "ip", max = 60, window = "1h" },

    -- Accounts that are made with a password. Each costs a hash, and is counted before the hash is paid.
    -- A family or a small office registers in an hour.
    register_ip = { on = "register", per = "ip", max = 10, window = "1h" },
    -- An IPv4 /24 or an IPv6 /48 registers in a day.
    register_network = { on = "register", per = "network", max = 200, window = "24h" },
    -- All addresses together: a distributed flood costs at most this many hashes and rows. Users who already have an
    -- account are not affected.
    register_global = { on = "register", per = "global", max = 5000, window = "1h" },

    -- Five wrong passwords lock the address, whether or not it has an account: a quarter of an hour first, then longer.
    verify = { on = "verify", per = "email", max = 5, window = "24h", counts = "failures",
      lock = { "15m", "1h", "6h", "24h" } },
    -- The same for the account, in flows that name no address.
    account = { on = "verify", per = "account", max = 5, window = "24h", counts = "failures",
      lock = { "15m", "1h", "6h", "24h" } },
    -- One network address cannot try address after address.
    verify_ip = { on = "verify", per = "ip", max = 100, window = "1h", counts = "failures" },
    -- A hundred wrong passwords without one right one lock the account's password, each time for longer. A right
    -- password resets the count.
    hard = { on = "verify", per = "account", max = 100, counts = "consecutive_failures", lock = { "1h", "6h", "24h" } },
  },

  -- "conceal": an unknown address is answered like a wrong password, after the same work. "reveal": it is answered
  -- with 404.
  unknown_account = "conceal",
}
