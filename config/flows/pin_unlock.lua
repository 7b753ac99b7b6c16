-- Entering the PIN, where a page or route asks for it (`require = { passed = "pin" }` in routes.lua). It is begun with a session, which goes
-- on under a new token with the PIN passed.
return flow "pin_unlock" {
  account = "existing",

  steps = {
    { "pin" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
