return tests {
  case "an account's own flow needs a session" { flow "probe_set", expect { status = 401 } },
}
