return { function(f)
  if cidr("10.0.0.0/8", "10.1.2.3") and glob("a.example.com", "*.example.com") and starts_with("abc", "ab") and
    ends_with("abc", "bc") then
    return hour(f.now, "UTC") + duration "1h30m" + (contains("hello", "ell") and 1 or 0)
  end
  return one_of(f.now, { 1, 2, 3 })
end, function(f) return f.limits.verify.used end, function(f) return f.phone.contry end }
