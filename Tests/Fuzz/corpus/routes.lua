local to = "http://127.0.0.1:3000"
return routes {
  { path = "/assets/**", to = to, allow = true },
  { path = "/**", to = { to, "http://127.0.0.1:3001" }, headers = { ["X-Tenant"] = "demo" }, [7] = 1,
    decide = function(f) if f.client.new_device and not f.set.pin then return require_also "pin" end return allow end },
}
