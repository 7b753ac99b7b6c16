-- As wrk.lua; each connection waits MOONGATE_DELAY milliseconds between its requests, so that the load is less than
-- what is possible.
local wait = tonumber(os.getenv("MOONGATE_DELAY") or "0")
delay = function() return wait end
dofile(os.getenv("MOONGATE_WRK"))
