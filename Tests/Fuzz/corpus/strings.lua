return { function(f)
  local s, t = ("abc%d"):rep(20) .. f.phone.country, {}
  for w, p in s:gmatch("(%a+)()") do t[#t + 1] = w .. p end
  local n = s:gsub("(b)(c)", { b = "x" }):gsub("x", function(c) return c:upper() end):find("X", 1, true)
  local a, b = s:match("^(.-)(%d*)$")
  t[#t + 1] = ("%5.2f|%-8s|%x|%c|%i"):format(1.5, "é", 255, 65, -1):reverse():lower():sub(-20, -2)
  t[#t + 1] = tostring(s:byte(1, 5)) .. string.char(72, 105) .. #s
  return deny(table.concat(t, "_", 1, 5))
end }
