-- The defaults of signing in by a directory. The operator's config/policies/ldap.lua replaces the fields that it names
-- (`limits` as a whole). Attempts are counted before the directory is asked, and `verify` stays below the lockout of
-- most directories (5 or 10 wrong passwords), so that attackers never reach that.
return policy "ldap" {
  limits = {
    begin_ip  = { on = "begin",  per = "ip",         max = 60, window = "1h" },
    -- Per user name as it is typed: in any case, width and spacing.
    verify    = { on = "verify", per = "identifier", max = 3,  window = "24h", counts = "failures",
      lock = { "30m", "1h", "6h", "24h" } },
    verify_ip = { on = "verify", per = "ip",         max = 60, window = "1h",  counts = "failures" },
  },
  unknown_account = "conceal",
}
