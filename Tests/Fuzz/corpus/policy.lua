local served = { "IN", "NL" }
local function strict(f) return not one_of(f.phone.country, served) end
return policy "phone_otp" {
  code = { length = 6, alphabet = "digits", ttl = "10m" },
  timers = { resend_after = { "60s", vary("60s", "10m", function(f) return f.client.new_device and "5m" or
    "2m" end) } },
  limits = { verify = { on = "verify", per = "phone", max = vary(2, 5, function(f) return f.set.x and 5 or 2 end),
    window = "24h" } },
  send = function(f) if strict(f) then return deny "country_not_served" end return allow end,
  verify = function(f)
    local ok, e = pcall(function() return ("a"):rep(3):gsub("%w", string.upper) end)
    for k, v in pairs(f.set) do if v then return require_also(k) end end
    return allow
  end,
}
