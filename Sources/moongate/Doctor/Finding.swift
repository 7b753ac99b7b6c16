/// What `moongate doctor` found out about one thing.
struct Finding: Encodable, Equatable, Sendable {
  enum State: String, Encodable, Sendable {
    case ok
    /// It works, and may not for long, or not for everyone.
    case warning
    case failed
  }

  /// What was looked at: `certificate`, `clock`, `store`, …
  let check: String
  let state: State
  /// What was found, in a sentence.
  let message: String
  /// What to do about it, in a sentence; nil if there is nothing to do.
  let fix: String?

  static func ok(_ check: String, _ message: String) -> Finding {
    Finding(check: check, state: .ok, message: message, fix: nil)
  }

  static func warning(_ check: String, _ message: String, fix: String) -> Finding {
    Finding(check: check, state: .warning, message: message, fix: fix)
  }

  static func failed(_ check: String, _ message: String, fix: String) -> Finding {
    Finding(check: check, state: .failed, message: message, fix: fix)
  }

  /// For a person.
  var text: String {
    let mark =
      switch state {
      case .ok: "ok      "
      case .warning: "warning "
      case .failed: "FAILED  "
      }
    return "\(mark)\(check): \(message)" + (fix.map { "\n        \($0)" } ?? "")
  }
}

/// What `moongate doctor --json` prints.
struct DoctorReport: Encodable {
  let checks: [Finding]

  /// Whether anything does not work.
  var hasFailed: Bool { checks.contains { $0.state == .failed } }

  /// For a person.
  var text: String {
    let count = { (state: Finding.State) in checks.count { $0.state == state } }
    return (checks.map(\.text) + ["\(count(.ok)) ok, \(count(.warning)) to look at, \(count(.failed)) failed"]).joined(
      separator: "\n")
  }
}
