-- A flood of PINs: POST of a wrong one, by whichever of the sessions in MOONGATE_TOKENS comes next.
local tokens, last = {}, 0
for line in io.lines(os.getenv("MOONGATE_TOKENS")) do tokens[#tokens + 1] = line end
request = function()
  last = last % #tokens + 1
  return wrk.format("POST", "/api/auth/verify-passcode",
    { ["Content-Type"] = "application/json", ["Authorization"] = "Bearer " .. tokens[last] }, '{"passcode":"284759"}')
end
