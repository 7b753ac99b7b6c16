-- Routes: which service receives a request, and what the request must meet. The first route that
-- matches is used. Without a match, the answer is 404. Every route requires a sign-in, unless it
-- says allow = true.
--
--   path       a pattern: * matches within one segment, ** any number of segments
--   host       a host name in lower case. Default: every host
--   methods    such as { "GET", "POST" }. Default: every method
--   to         the upstream (scheme, host, port, perhaps a path), or a list of upstreams, of which the
--              first one that works is used, unless balance says something else
--   allow      true: no sign-in required. { networks = { "10.0.0.0/8" } }: not from these addresses
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
--
-- For services that need more:
--
--   strip             the beginning of the path that is removed, such as "/wiki"
--   host_header       the Host that the service receives: "keep", "upstream" or a name
--   encoded           passes %2F, %5C and // on: { "slash", "backslash", "empty" }
--   identity          the headers that say who the user is: { user = "X-WEBAUTH-USER" }, and
--                     HTTP Basic: { basic = { user = "{email}", password = file "wiki.secret" } }
--   encoding          of identity values that are not ASCII: "utf-8", "percent" or "rfc2047"
--   bearer            the app of apps.lua whose access token the service receives
--   response_headers  headers to set on responses, or to remove: { ["Server"] = false }
--   rate              how many requests: { "100/s", per = "account" }
--   retry             sends idempotent requests again: { on = { "connect", "503" }, times = 2 }
--   balance           "first", "round_robin", "least_busy" or "sticky", for several upstreams
--   health            tries upstreams: a path, and how often it is asked
--   upstream_tls      certificates: { ca = "ca.pem", cert = "…", key = file "…", name = "…" }
--   http2             true: HTTP/2 to an https:// upstream. h2c:// is HTTP/2 without TLS
--   frames            the sites that may show the route in a frame
--   error_pages       the folder in pages/ with the templates of refusals
return routes {
  -- The style sheets of the demo, which every page needs.
  { path = "/assets/**", methods = { "GET" }, to = "http://127.0.0.1:3000", allow = true },

  -- Everything else requires a sign-in.
  { path = "/**", to = "http://127.0.0.1:3000", flow = "login", timeout = "30s", websocket = true },
}
