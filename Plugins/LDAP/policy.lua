-- The defaults of signing in by a directory. The operator's config/policies/ldap.lua replaces the fields that it names
-- (`limits` as a whole). Attempts are counted before the directory is asked: two for a name, then none for an hour.
-- Attackers therefore never lock an entry of a directory that allows five wrong passwords and forgets them within that
-- hour. If it never forgets them, the fifth comes after seven hours.
return policy "ldap" {
  limits = {
    begin_ip  = { on = "begin",  per = "ip",         max = 60, window = "1h" },
    -- Per user name as it is typed: in any case, width and spacing.
    verify    = { on = "verify", per = "identifier", max = 2,  window = "24h", counts = "failures",
      lock = { "1h", "6h", "24h" } },
    verify_ip = { on = "verify", per = "ip",         max = 60, window = "1h",  counts = "failures" },
  },
  unknown_account = "conceal",
}
