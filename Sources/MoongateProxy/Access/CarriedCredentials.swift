import MoongateCore

/// The credentials of a request with text fields, parsed by `Credentials`.
///
/// Attack: if two parsers apply a rule differently, a request can pass the checks of one as anonymous and get a user's
/// rights from the other. Therefore the gateway's own calls use the parser of the data path.
package struct CarriedCredentials: Sendable {
  /// The session token from the cookie or Bearer field; nil if there is none of the right form.
  package let token: String?
  /// Whether cookie and Bearer differ, or Authorization occurs more than once: status 400.
  package let isContradictory: Bool
  /// Whether any cookie of the gateway is present, in any form.
  package let holdsCookie: Bool
  /// Whether the token is that of a frame's cookie.
  package let isFramed: Bool
  private let cookies: [(name: String, value: String)]

  /// - Parameters:
  ///   - cookies: the values of the Cookie fields, in order.
  ///   - authorizations: the values of the Authorization fields.
  ///   - admitsFramed: whether the session cookie of a frame counts (`FrameRequest`).
  package init(cookies: [String], authorizations: [String], settings: GatewaySettings, admitsFramed: Bool = false) {
    let bytes = (cookies + authorizations).flatMap { Array($0.utf8) }
    var fields: [Range<Int>] = []
    for value in cookies + authorizations {
      let start = fields.last?.upperBound ?? 0
      fields.append(start..<start + value.utf8.count)
    }
    let cookieFields = Array(fields.prefix(cookies.count))
    var found = Credentials(
      bytes.span, cookies: cookieFields, authorizations: Array(fields.dropFirst(cookies.count)),
      cookieName: GatewayCookies.sessionName(settings),
      framedName: admitsFramed ? GatewayCookies.framedSessionName(settings) : nil)
    found.useFramedCookie(bytes.span)
    token = found.token.map { String(decoding: bytes[$0], as: UTF8.self) }
    isContradictory = found.isContradictory
    holdsCookie = found.hasOurCookies
    isFramed = found.isFramed
    var pairs: [(name: String, value: String)] = []
    for field in cookieFields {
      GatewayCookieBytes.forEach(bytes.span, field) { _, name, value in
        if let value {
          pairs.append((String(decoding: bytes[name], as: UTF8.self), String(decoding: bytes[value], as: UTF8.self)))
        }
      }
    }
    self.cookies = pairs
  }

  /// The values of the cookies with this name, in order.
  package func values(of name: String) -> [String] { cookies.filter { $0.name == name }.map(\.value) }

  /// Whether the text has the form of a session token.
  package static func isToken(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    return Credentials.isToken(bytes.span, bytes.indices)
  }
}
