-- Routes: which service receives a request, and what the request must meet. The first route that
-- matches is used. Without a match, the answer is 404. Every route requires a sign-in, unless it
-- says allow = true.
--
--   path       a pattern: * matches within one segment, ** any number of segments
--   host       a host name in lower case. Default: every host
--   methods    such as { "GET", "POST" }. Default: every method
--   to         the upstream (scheme, host and port), or a list of upstreams, of which the first one
--              that works is used, unless balance says something else
--   allow      true: no sign-in required
--   flow       the flow for users without a session. Default: "login"
--   require    { group = "ops" }, { passed = "phone_otp", within = "5m" } or
--              { email_verified = true }. A group can be combined with either
--   tokens     also accept tokens of programs: true, { "ci" } or { personal = true }
--   decide     a function of facts, called for each request. It returns allow, deny "reason" or
--              require_also "provider"
--   timeout    the maximum silence of the upstream. Default: "30s"
--   websocket  true: allow WebSockets and other upgrades
--   headers    headers to set on each request, such as { ["X-Tenant"] = "demo" }
--   body       the maximum size of a request body, such as "64MiB". Default: unlimited
--   body_rate  the minimum rate of a request body. Default: "1KiB/10s". false: no minimum
return routes {
  -- The style sheets of the demo, which every page needs.
  { path = "/assets/**", methods = { "GET" }, to = "http://127.0.0.1:3000", allow = true },

  -- Everything else requires a sign-in.
  { path = "/**", to = "http://127.0.0.1:3000", flow = "login", timeout = "30s", websocket = true },
}
