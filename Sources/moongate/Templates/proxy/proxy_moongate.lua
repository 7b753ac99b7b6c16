-- moongate.lua
local address = "http://127.0.0.1:8080/auth/forward/haproxy"
local identity = {
  "Remote-User", "Remote-Email", "Remote-Phone", "Remote-Name", "Remote-Groups", "X-Moongate-Assertion",
}
local passed_on = {
  "accept", "authorization", "cookie", "hx-request", "origin", "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site",
  "sec-fetch-user", "sec-purpose", "service-worker", "user-agent", "x-forwarded-for", "x-forwarded-host",
  "x-forwarded-proto", "x-requested-with",
}
local handed_back = {
  "location", "content-type", "cache-control", "content-security-policy", "strict-transport-security",
  "www-authenticate", "retry-after", "ratelimit", "ratelimit-policy",
}

core.register_action("moongate", { "http-req" }, function(txn)
  local received = txn.http:req_get_headers()
  local headers = { ["x-forwarded-method"] = { txn.sf:method() }, ["x-forwarded-uri"] = { txn.sf:pathq() } }
  for _, name in ipairs(passed_on) do
    local values = received[name]
    if values then
      headers[name] = {}
      for index = 0, #values do table.insert(headers[name], values[index]) end
    end
  end

  local answer = core.httpclient():get { url = address, headers = headers, timeout = 5000 }
  local told = answer and answer.headers or {}
  if answer and answer.status == 200 then
    for _, name in ipairs(identity) do
      local value = told[name:lower()]
      txn.http:req_set_header(name, value and value[0] or "")
    end
    -- Authorization holds a Moongate token or session. The service must not see it.
    if told["x-moongate-authorization"] then txn.http:req_del_header("Authorization") end
    return
  end
  local status = answer and answer.status or 0
  local reply = txn:reply { status = status >= 300 and status or 503, body = status >= 300 and answer.body or "" }
  for _, name in ipairs(handed_back) do
    local values = told[name]
    if values then
      for index = 0, #values do reply:add_header(name, values[index]) end
    end
  end
  txn:done(reply)
end)
