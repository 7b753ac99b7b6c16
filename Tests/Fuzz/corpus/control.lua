local calls, seen = 0, { a = { b = { 1, 2 } } }
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
return { function(f)
  calls = calls + 1
  local x <const>, y <close> = 1, nil
  local ok, e = pcall(error, { code = 1 })
  goto done
  do local z = 0 repeat z = z + 1 until z > 10 end
  ::done::
  local g = function(...) local a, b = ... return select(2, ...), a and b or nil end
  return fib(12) + calls + (g(1, 2, 3)), ok
end, function(f) seen.a.b[3] = 3 return allow end, function(f) local s = "x" while true do s = s .. s end end,
  function() while true do pcall(error) end end }
