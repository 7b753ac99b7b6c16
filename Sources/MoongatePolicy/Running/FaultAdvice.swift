import CLua

/// What to do about a function that fails.
enum FaultAdvice {
  /// A message of Lua's with what to do, where that can be told.
  static func added(to message: String) -> String {
    if message.contains(/^attempt to compare (?:string with number|number with string)/) {
      return message + "; numbers are compared with numbers: a length of time is duration(\"15m\")"
    }
    let isAbsent = message.contains("a nil value") || message.contains(/^attempt to compare .*\bnil\b/)
    // A field of something else than facts: nobody knows what it should be.
    guard message.hasPrefix("attempt to"), isAbsent else { return message }
    return message + "; look first whether it is there, as in `f.account.exists and f.account.age > 60`"
  }

  /// What to do about a result of the wrong kind; empty where its sentence says all.
  static func of(_ kind: clua_kind) -> String {
    kind == CLUA_NIL ? ": let every way through the function end with a return" : ""
  }
}
