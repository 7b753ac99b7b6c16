import CLua

/// Advice for functions that fail.
enum FaultAdvice {
  /// A Lua error message with advice, if the cause is known.
  static func added(to message: String) -> String {
    if message.contains(/^attempt to compare (?:string with number|number with string)/) {
      return message + "; both sides must be numbers: write a duration as duration(\"15m\")"
    }
    let isAbsent = message.contains("a nil value") || message.contains(/^attempt to compare .*\bnil\b/)
    // Applies only to facts. For other tables, the intended value is unknown.
    guard message.hasPrefix("attempt to"), isAbsent else { return message }
    return message + "; check first that the value is not nil, as in `f.account.exists and f.account.age > 60`"
  }

  /// Advice for a result of the wrong type; empty if the message already says everything.
  static func of(_ kind: clua_kind) -> String {
    kind == CLUA_NIL ? ": end every branch of the function with a return" : ""
  }
}
