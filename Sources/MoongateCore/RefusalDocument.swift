import MoongateSDK

/// How a refusal is written down for a client: `application/problem+json` (RFC 9457).
extension Refusal {
  package static let mediaType = "application/problem+json"

  /// What `Retry-After` says, in seconds (RFC 9110 section 10.2.3); nil where the refusal names no time.
  package var retryAfterSeconds: Int? { retryAfter.map(\.retryAfterSeconds) }

  /// The document, in UTF-8, with one line end.
  /// - Parameter more: text members besides those of every refusal.
  package func document(with more: KeyValuePairs<String, String> = [:]) -> [UInt8] {
    var members = [
      ("type", Self.quoted("urn:moongate:problem:\(code.name)")), ("title", Self.quoted(code.title)), ("status", String(code.status)),
      ("detail", Self.quoted(sentence)), ("code", Self.quoted(code.name)), ("decision_id", Self.quoted(decision.text)),
    ]
    if let attemptsLeft { members.append(("attempts_left", String(attemptsLeft))) }
    if let retryAfterSeconds { members.append(("retry_after", String(retryAfterSeconds))) }
    if let resendAt { members.append(("resend_at", Self.quoted(resendAt.text))) }
    if let field { members.append(("field", Self.quoted(field))) }
    if let provider { members.append(("provider", Self.quoted(provider.rawValue))) }
    if let flow { members.append(("flow", Self.quoted(flow))) }
    members += more.map { ($0.key, Self.quoted($0.value)) }
    return Array("{\(members.map { "\"\($0)\":\($1)" }.joined(separator: ","))}\n".utf8)
  }

  /// A JSON string (RFC 8259 section 7).
  private static func quoted(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": quoted += "\\\""
      case "\\": quoted += "\\\\"
      case "\u{0}"..<"\u{20}", "\u{7f}", "\u{2028}", "\u{2029}":
        let digits = String(scalar.value, radix: 16)
        quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted + "\""
  }
}
