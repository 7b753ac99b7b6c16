-- Which requests go where, and what they need. The first route that matches wins; what matches none is 404. Nothing is
-- open that does not say so.
--
--   path       a pattern: * is within one segment, ** is any number of segments (/x/** covers /x), all else literal
--   host       an exact name in lower case; without it, every host
--   methods    such as { "GET", "POST" }; without it, every method
--   to         an upstream (scheme, host, port), or a list that is tried in turn
--   allow      true: open to all, signed in or not
--   flow       where someone without a session is led; "login" unless said otherwise
--   require    { group = "ops" }, { passed = "phone_otp", within = "5m" } or { email_verified = true }; a group
--   together with either tokens     takes tokens of programs too: true, { "ci" } or { personal = true }
--   decide     a function of facts, asked for each request: allow, deny "reason" or require_also "provider"
--   timeout    the longest silence of the upstream; "30s" unless said otherwise
--   websocket  true lets upgrades through
--   headers    set on each request, as in { ["X-Tenant"] = "demo" }
--   body       the largest body, as in "64MiB"; without it, any
--   body_rate  the least that comes of a body in each window; "1KiB/10s" unless said otherwise, false for no limit
return routes {
  -- The demo's stylesheets are open, so that its pages look right to everyone.
  { path = "/assets/**", methods = { "GET" }, to = "http://127.0.0.1:3000", allow = true },

  -- Everything else is for people who signed in.
  { path = "/**", to = "http://127.0.0.1:3000", flow = "login", timeout = "30s", websocket = true },
}
