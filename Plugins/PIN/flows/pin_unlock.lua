-- Enter the PIN where a page or route requires it (`require = { passed = "pin" }` in routes.lua). The session continues
-- under a new token.
return flow "pin_unlock" {
  purpose = "unlock",
  provider = "pin",
  account = "existing",

  steps = {
    { "pin" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
