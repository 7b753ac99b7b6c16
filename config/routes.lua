-- Which service gets a request, and what the request needs. The first matching route is used; a request without a
-- matching route gets 404. A route is closed unless it says `allow = true`.
--
--   path       a pattern: * matches within one segment, ** any number of segments (/x/** also matches /x)
--   host       an exact host name in lower case; default: every host
--   methods    such as { "GET", "POST" }; default: every method
--   to         the upstream (scheme, host, port), or a list of upstreams that are tried in turn
--   allow      true: open to everyone, signed in or not
--   flow       the flow for visitors without a session; default: "login"
--   require    { group = "ops" }, { passed = "phone_otp", within = "5m" } or { email_verified = true };
--              a group can be combined with either
--   tokens     also accept tokens of programs: true, { "ci" } or { personal = true }
--   decide     a function of facts, called for each request: allow, deny "reason" or require_also "provider"
--   timeout    the longest silence of the upstream; default: "30s"
--   websocket  true allows WebSockets and other upgrades
--   headers    headers to set on each request, such as { ["X-Tenant"] = "demo" }
--   body       the largest request body, such as "64MiB"; default: unlimited
--   body_rate  the slowest transfer of a request body; default: "1KiB/10s", false: no limit
return routes {
  -- The demo's stylesheets are open, so that its pages look right to everyone.
  { path = "/assets/**", methods = { "GET" }, to = "http://127.0.0.1:3000", allow = true },

  -- Everything else is for people who signed in.
  { path = "/**", to = "http://127.0.0.1:3000", flow = "login", timeout = "30s", websocket = true },
}
