-- Which requests go where, and what they need. The first route that matches wins; what matches none is 404. Nothing is
-- open that does not say so.
return routes {
  -- Pages for everyone, signed in or not:
  -- { path = "/public/**", methods = { "GET" }, to = @UPSTREAM@, allow = true },

  -- Everything else is for people who signed in.
  { path = "/**", to = @UPSTREAM@, flow = "login", timeout = "30s", websocket = true },
}
