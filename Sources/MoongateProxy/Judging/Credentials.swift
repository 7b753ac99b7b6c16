import MoongateCore

/// The gateway's cookies: exactly these names are ours (http.md, "Sessions and cookies").
enum GatewayCookie {
  private static let names: [StaticString] = [
    "moongate", "moongate-flow", "moongate-device", "__Host-moongate", "__Host-moongate-flow", "__Host-moongate-device", "__Secure-moongate",
  ]

  /// Whether the name in the range is one of them.
  static func isOurs(_ bytes: Span<UInt8>, _ name: Range<Int>) -> Bool {
    guard !name.isEmpty, bytes[name.lowerBound] == UInt8(ascii: "m") || bytes[name.lowerBound] == UInt8(ascii: "_") else { return false }
    return names.contains { ByteClass.equalCase(bytes, name, $0) }
  }

  /// The name of the session's cookie here.
  static func sessionName(_ settings: GatewaySettings) -> StaticString {
    guard settings.publicURL.isSecure else { return "moongate" }
    return settings.cookieDomain == nil ? "__Host-moongate" : "__Secure-moongate"
  }

  /// Calls back with the whole of each cookie of a Cookie field, without the space around it, and with its name.
  ///
  /// Only `;` parts cookies: a quote protects nothing (RFC 6265 section 5.4 knows none).
  static func forEach(_ bytes: Span<UInt8>, _ value: Range<Int>, _ body: (_ cookie: Range<Int>, _ name: Range<Int>) -> Void) {
    var start = value.lowerBound
    while start < value.upperBound {
      var end = start
      while end < value.upperBound, bytes[end] != UInt8(ascii: ";") { end += 1 }
      let cookie = ByteClass.trimmed(bytes, start..<end)
      var nameEnd = cookie.lowerBound
      while nameEnd < cookie.upperBound, bytes[nameEnd] != UInt8(ascii: "=") { nameEnd += 1 }
      if !cookie.isEmpty { body(cookie, ByteClass.trimmed(bytes, cookie.lowerBound..<nameEnd)) }
      start = end + 1
    }
  }

  /// Whether a Set-Cookie field sets one of ours.
  static func isSet(_ bytes: Span<UInt8>, _ value: Range<Int>) -> Bool {
    var end = value.lowerBound
    while end < value.upperBound, bytes[end] != UInt8(ascii: ";") { end += 1 }
    var pair = ByteClass.trimmed(bytes, value.lowerBound..<end)
    // Attack: `=moongate=x` has no name, and browsers send it back as `moongate=x`.
    while !pair.isEmpty, bytes[pair.lowerBound] == UInt8(ascii: "=") { pair = ByteClass.trimmed(bytes, pair.lowerBound + 1..<pair.upperBound) }
    var nameEnd = pair.lowerBound
    while nameEnd < pair.upperBound, bytes[nameEnd] != UInt8(ascii: "=") { nameEnd += 1 }
    return isOurs(bytes, ByteClass.trimmed(bytes, pair.lowerBound..<nameEnd))
  }
}

/// The token that a request carries: where it lies, and how it came.
struct Credentials {
  /// In the head's bytes; of the length and the alphabet of our tokens.
  var token: Range<Int>?
  /// Whether it came (also) as `Authorization: Bearer`.
  var isBearer = false
  /// Whether it came (also) as a cookie.
  var isCookie = false
  /// Whether a Bearer came that may be a session's and was not judged: it goes nowhere.
  var isBearerUnjudged = false
  /// Cookie and Bearer differ, or there is more than one Authorization: 400.
  var isContradictory = false
  /// How many cookies of the session's name came.
  var cookies = 0
  /// Whether some Cookie field holds a cookie of ours, which does not go upstream.
  var hasOurCookies = false

  private static let tokenLength = 43

  init(_ head: borrowing RequestHead, _ bytes: Span<UInt8>, cookieName: StaticString) {
    var cookie: Range<Int>?
    var cookies = 0
    defer { self.cookies = cookies }
    var bearer: Range<Int>?
    var authorizations = 0
    for field in head.fields {
      switch field.kind {
      case .cookie:
        GatewayCookie.forEach(bytes, field.value) { whole, name in
          guard GatewayCookie.isOurs(bytes, name) else { return }
          hasOurCookies = true
          guard ByteClass.equalCase(bytes, name, cookieName) else { return }
          cookies += 1
          let start = min(name.upperBound + 1, whole.upperBound)
          cookie = ByteClass.trimmed(bytes, start..<whole.upperBound)
        }
      case .authorization:
        authorizations += 1
        bearer = Self.bearer(bytes, field.value)
      default: break
      }
    }
    if authorizations > 1 { isContradictory = true }
    // Two cookies of our name: one of them may be an attacker's, set from a sibling domain.
    if cookies > 1 {
      isBearerUnjudged = bearer.map { Self.isToken(bytes, $0) } ?? false
      return
    }
    if let cookie, let bearer, !Self.equal(bytes, cookie, bearer) { isContradictory = true }
    guard let candidate = cookie ?? bearer, Self.isToken(bytes, candidate) else { return }
    token = candidate
    isCookie = cookie != nil
    isBearer = bearer != nil
  }

  /// `Bearer` 1*SP token68 (RFC 6750 section 2.1), the scheme in any case.
  private static func bearer(_ bytes: Span<UInt8>, _ value: Range<Int>) -> Range<Int>? {
    guard value.count > 7, ByteClass.equal(bytes, value.lowerBound..<value.lowerBound + 6, "bearer"), ByteClass.isSpace(bytes[value.lowerBound + 6])
    else { return nil }
    return ByteClass.trimmed(bytes, value.lowerBound + 7..<value.upperBound)
  }

  private static func isToken(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    guard range.count == tokenLength else { return false }
    for index in range {
      let byte = bytes[index]
      guard ByteClass.isDigit(byte) || (byte | 0x20) &- 0x61 < 26 || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_") else { return false }
    }
    return true
  }

  private static func equal(_ bytes: Span<UInt8>, _ left: Range<Int>, _ right: Range<Int>) -> Bool {
    guard left.count == right.count else { return false }
    var difference: UInt8 = 0
    for offset in 0..<left.count { difference |= bytes[left.lowerBound + offset] ^ bytes[right.lowerBound + offset] }
    return difference == 0
  }
}
