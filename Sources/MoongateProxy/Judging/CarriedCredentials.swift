import MoongateCore

/// What a request whose fields are text carries to say who it is from: read by `Credentials`, to the byte.
///
/// Attack: two readers of one rule. A request that is nobody's for the one and somebody's for the other gets past the
/// checks of the first with the rights of the second. So the gateway's own calls read by the data path's rule and have
/// none of their own.
package struct CarriedCredentials: Sendable {
  /// The session's token, by cookie or Bearer; nil where there is none, or nothing that could be one.
  package let token: String?
  /// Cookie and Bearer differ, or there is more than one Authorization: 400.
  package let isContradictory: Bool
  /// Whether a cookie of ours is there, under any of its names and of any shape.
  package let holdsCookie: Bool
  private let cookies: [(name: String, value: String)]

  /// - Parameters:
  ///   - cookies: the values of the Cookie fields, in order.
  ///   - authorizations: those of the Authorization fields.
  package init(cookies: [String], authorizations: [String], settings: GatewaySettings) {
    let bytes = (cookies + authorizations).flatMap { Array($0.utf8) }
    var fields: [Range<Int>] = []
    for value in cookies + authorizations {
      let start = fields.last?.upperBound ?? 0
      fields.append(start..<start + value.utf8.count)
    }
    let cookieFields = Array(fields.prefix(cookies.count))
    let found = Credentials(
      bytes.span, cookies: cookieFields, authorizations: Array(fields.dropFirst(cookies.count)),
      cookieName: GatewayCookie.sessionName(settings))
    token = found.token.map { String(decoding: bytes[$0], as: UTF8.self) }
    isContradictory = found.isContradictory
    holdsCookie = found.hasOurCookies
    var pairs: [(name: String, value: String)] = []
    for field in cookieFields {
      GatewayCookie.forEach(bytes.span, field) { _, name, value in
        if let value {
          pairs.append((String(decoding: bytes[name], as: UTF8.self), String(decoding: bytes[value], as: UTF8.self)))
        }
      }
    }
    self.cookies = pairs
  }

  /// The values of the cookies of this name, in order.
  package func values(of name: String) -> [String] { cookies.filter { $0.name == name }.map(\.value) }

  /// Whether the text has the form of our tokens.
  package static func isToken(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    return Credentials.isToken(bytes.span, bytes.indices)
  }
}
