-- Cases that must hold for any numbers in policies/phone_otp.lua. `moongate check` and the running
-- gateway refuse a change that breaks one. `moongate policy test -v` shows each case act by act.
--
-- A case begins with an empty database and a clock that only `wait` moves.
--   flow "login"                    begins a flow
--   phone "+91…", email "…"         the identifier, as the user types it
--   account { exists = true }       an account with that identifier exists. Also age, idle,
--                                   has_pin, email_verified, locked, …
--   invited()                       an operator invites the user, and the next flow begins with
--                                   the invitation. Only needed if accounts.lua asks for one
--   client { ip = "…" }             the client of all requests that follow. Also user_agent
--   send(), resend()                asks for a code. send { until_sent = true } waits until it may
--   right(), wrong(), skip()        enters the right code or a wrong one, or skips the step.
--                                   Also wrong { until_locked = true }, wrong { times = 3 }
--   request { path = "/x" }         a request to a service, with the session of the last completed
--                                   flow. Also method, host, query
--   wait "15m"                      Also wait { until_unlocked = true }, { until_resend = true },
--                                   { until_expired = true }
--   expect { … }                    checks the last answer: status (429, "pending", "complete",
--                                   "refused"), code, retry_after, attempts_left, resends_left,
--                                   field, messages (sent so far), step, locked, next
return tests {
  case "a code signs in to the account of a number" {
    flow "login", phone "+919999999999", account { exists = true },
    send(), expect { status = "pending", messages = 1 },
    right(), expect { status = "complete" },
  },

  case "a number may be typed in any format" {
    phone "+919999999999", account { exists = true },
    flow "login", phone "099999 99999", send(), right(), expect { status = "complete" },
  },

  case "wrong codes lock, and then the right code is refused" {
    flow "login", phone "+919999999999", account { exists = true },
    send(), wrong { until_locked = true }, expect { locked = true },
    right(), expect { locked = true },
  },

  case "wrong codes of one flow count in every other flow" {
    flow "login", phone "+919999999999", account { exists = true },
    send(), wrong { until_locked = true },
    flow "enter", send(), right(), expect { status = "refused" },
  },

  case "a number without an account gets no code to sign in" {
    flow "login", phone "+919999999999", account { exists = false },
    send(), expect { messages = 0 },
  },

  case "a code expires" {
    flow "login", phone "+919999999999", account { exists = true },
    send(), wait { until_expired = true }, right(), expect { status = "refused" },
  },

  case "a code creates an account for a new number" {
    invited(), flow "register", phone "+919999999999", account { exists = false },
    send(), right(), expect { status = "complete" },
  },

  case "entering creates an account, and finds it the next time" {
    invited(), flow "enter", phone "+919999999999",
    send(), right(), expect { status = "complete" },
    flow "enter", send { until_sent = true }, right(), expect { status = "complete" },
  },

  case "an invalid number is refused" {
    flow "enter", phone "12", send(), expect { status = 422, code = "invalid_phone", field = "phone", messages = 0 },
  },
}
