return { function(f)
  local t = table.pack(3, 1, 2, nil, 5)
  t.n = nil
  table.sort(t, function(a, b) return a > b end)
  table.insert(t, 2, "x") table.insert(t, "y")
  local u = table.move(t, 1, #t, 3, {})
  for i, v in ipairs(t) do u["k" .. i] = v end
  local s = 0
  for k, v in pairs(u) do s = s + #tostring(k) u[k] = nil end
  return select("#", table.unpack(t, 1, 4)) + s + math.max(1, 2.5, s) // 1 + (table.remove(t) and 1 or 0)
end, function(f) local t = {} for i = 1, f.now % 50 do t[i] = { i } end return #t end }
