/// Why an answer of the site is refused. For the operator's log and decision: the client only learns that the
/// sign-in failed.
struct AnswerRefusal: Error, Equatable, CustomStringConvertible {
  /// The closed set of reasons. Those that are named after a claim, a header or a parameter have its name.
  enum Reason: String, CaseIterable {
    /// The text is no ID token (RFC 7519 section 7.2).
    case token
    /// A member occurs twice in a JSON object (RFC 7519 section 4).
    case duplicate
    case alg, crit, kid, signature
    case iss, sub, aud, azp, exp, iat, nbf, nonce
    case authTime = "auth_time"
    /// Of a logout token.
    case events, jti
    /// The site names only some of the user's groups, or none.
    case groups
    /// The answer of the userinfo endpoint belongs to another subject (OpenID Connect Core 1.0 section 5.3.2).
    case userinfo
    /// The settings name another issuer than when the step began.
    case issuer
    /// The parameter `state` is not that of this step.
    case state
    /// The site's own error (RFC 6749 section 4.1.2.1).
    case error
    /// The code was not redeemed.
    case code
  }

  private static let longestValue = 100

  let reason: Reason
  /// The value that came, in printable ASCII; nil if it is a secret or personal.
  let value: String?

  /// - Parameter value: the value that came. Never a secret.
  init(_ reason: Reason, _ value: String? = nil) {
    self.reason = reason
    self.value = value.map(Self.shown)
  }

  /// A text of the site in printable ASCII, cut.
  ///
  /// Attack: control characters in an issuer's answer reach the operator's terminal.
  static func shown(_ text: String) -> String {
    let plain = text.unicodeScalars.prefix(longestValue).map {
      (0x20...0x7e).contains($0.value) ? Character($0) : "?"
    }
    return String(plain) + (text.unicodeScalars.count > longestValue ? "..." : "")
  }

  var description: String { text }

  /// The reason and the value, such as `alg RS512`.
  var text: String { value.map { "\(reason.rawValue) \($0)" } ?? reason.rawValue }
}
