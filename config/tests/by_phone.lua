-- These cases must hold for any numbers in policies/phone_otp.lua. A change that breaks one of them is refused by
-- `moongate check` and by the gateway that runs; `moongate policy test -v` shows each of them act by act.
--
-- A case begins with an empty store and a clock that only `wait` moves.
--   flow "login"                       begins a flow
--   phone "+91…", email "…"            who it is, as they would type it
--   account { exists = true }          there is an account of that name; also age, idle, has_pin, email_verified,
--   locked, … client { ip = "…" }                where requests come from from here on; also user_agent
--   send(), resend()                   asks for a code; send { until_sent = true } waits as long as it must
--   right(), wrong(), skip()           enters the code, or another one; wrong { until_locked = true }, wrong
--   { times = 3 } request { path = "/x" }            asks for a page behind the gateway, signed in as by the flow
--   completed last; also method, host, query wait "15m"                         also wait { until_unlocked = true },
--   { until_resend = true }, { until_expired = true } expect { … }                       of the answer before it:
--   status (429, "pending", "complete", "refused"), code, retry_after, attempts_left,
--                                      resends_left, field, messages (how many were sent so far), step, locked, next
return tests {
  case "a code signs a known number in" {
    flow "login", phone "+919999999999", account { exists = true },
    send(), expect { status = "pending", messages = 1 },
    right(), expect { status = "complete" },
  },

  case "a number may be typed in any spelling" {
    phone "+919999999999", account { exists = true },
    flow "login", phone "099999 99999", send(), right(), expect { status = "complete" },
  },

  case "wrong codes lock, and then the right one does not open" {
    flow "login", phone "+919999999999", account { exists = true },
    send(), wrong { until_locked = true }, expect { locked = true },
    right(), expect { locked = true },
  },

  case "wrong codes of one flow count in every other" {
    flow "login", phone "+919999999999", account { exists = true },
    send(), wrong { until_locked = true },
    flow "enter", send(), right(), expect { status = "refused" },
  },

  case "an unknown number gets no code to log in with" {
    flow "login", phone "+919999999999", account { exists = false },
    send(), expect { messages = 0 },
  },

  case "a code dies" {
    flow "login", phone "+919999999999", account { exists = true },
    send(), wait { until_expired = true }, right(), expect { status = "refused" },
  },

  case "a code makes an account for a new number" {
    flow "register", phone "+919999999999", account { exists = false },
    send(), right(), expect { status = "complete" },
  },

  case "entering makes an account, and finds it the next time" {
    flow "enter", phone "+919999999999",
    send(), right(), expect { status = "complete" },
    flow "enter", send { until_sent = true }, right(), expect { status = "complete" },
  },

  case "what is no number is told apart" {
    flow "enter", phone "12", send(), expect { status = 422, code = "invalid_phone", field = "phone", messages = 0 },
  },
}
