/// One result of `moongate doctor`.
struct Finding: Encodable, Equatable, Sendable {
  enum State: String, Encodable, Sendable {
    case ok
    /// Works now, but may fail later or for some users.
    case warning
    case failed
  }

  /// The name of the check: `certificate`, `clock`, `store`, …
  let check: String
  let state: State
  /// The result as a sentence.
  let message: String
  /// How to fix it, as a sentence; nil if nothing needs to be done.
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

  /// The result as a line of text.
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

/// The output of `moongate doctor --json`.
struct DoctorReport: Encodable {
  let checks: [Finding]

  /// Whether any check failed.
  var hasFailed: Bool { checks.contains { $0.state == .failed } }

  /// The report as text: first what failed, then the warnings.
  var text: String {
    let sorted = [Finding.State.failed, .warning, .ok].flatMap { state in checks.filter { $0.state == state } }
    let count = { (state: Finding.State) in checks.count { $0.state == state } }
    let warnings = "\(count(.warning)) warning\(count(.warning) == 1 ? "" : "s")"
    return (sorted.map(\.text) + ["\(count(.ok)) ok, \(warnings), \(count(.failed)) failed"]).joined(separator: "\n")
  }
}
