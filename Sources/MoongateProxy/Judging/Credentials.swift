import MoongateCore

/// The gateway's cookies: exactly these names are ours (http.md, "Sessions and cookies").
enum GatewayCookie {
  private static let names: [StaticString] = [
    "moongate", "moongate-flow", "moongate-device", "__Host-moongate", "__Host-moongate-flow", "__Host-moongate-device",
    "__Secure-moongate",
  ]

  /// Whether the name in the range is one of them.
  static func isOurs(_ bytes: Span<UInt8>, _ name: Range<Int>) -> Bool {
    guard !name.isEmpty, bytes[name.lowerBound] == UInt8(ascii: "m") || bytes[name.lowerBound] == UInt8(ascii: "_")
    else { return false }
    return names.contains { ByteClass.equalCase(bytes, name, $0) }
  }

  /// The name of the session's cookie here.
  static func sessionName(_ settings: GatewaySettings) -> StaticString {
    guard settings.publicURL.isSecure else { return "moongate" }
    return settings.cookieDomain == nil ? "__Host-moongate" : "__Secure-moongate"
  }

  /// Calls back with the whole of each cookie of a Cookie field, its name and its value, all without the space around
  /// them.
  ///
  /// Only `;` parts cookies: a quote protects nothing (RFC 6265 section 5.4 knows none). One without `=` has no value,
  /// nil; what it holds stands for its name, so that it goes nowhere where that is one of ours.
  static func forEach(
    _ bytes: Span<UInt8>, _ value: Range<Int>,
    _ body: (_ cookie: Range<Int>, _ name: Range<Int>, _ value: Range<Int>?) -> Void
  ) {
    var start = value.lowerBound
    while start < value.upperBound {
      var end = start
      while end < value.upperBound, bytes[end] != UInt8(ascii: ";") { end += 1 }
      let cookie = ByteClass.trimmed(bytes, start..<end)
      var nameEnd = cookie.lowerBound
      while nameEnd < cookie.upperBound, bytes[nameEnd] != UInt8(ascii: "=") { nameEnd += 1 }
      if !cookie.isEmpty {
        let value = nameEnd < cookie.upperBound ? ByteClass.trimmed(bytes, nameEnd + 1..<cookie.upperBound) : nil
        body(cookie, ByteClass.trimmed(bytes, cookie.lowerBound..<nameEnd), value)
      }
      start = end + 1
    }
  }

  /// Whether a Set-Cookie field sets one of ours.
  static func isSet(_ bytes: Span<UInt8>, _ value: Range<Int>) -> Bool {
    var end = value.lowerBound
    while end < value.upperBound, bytes[end] != UInt8(ascii: ";") { end += 1 }
    var pair = ByteClass.trimmed(bytes, value.lowerBound..<end)
    // Attack: `=moongate=x` has no name, and browsers send it back as `moongate=x`.
    while !pair.isEmpty, bytes[pair.lowerBound] == UInt8(ascii: "=") {
      pair = ByteClass.trimmed(bytes, pair.lowerBound + 1..<pair.upperBound)
    }
    var nameEnd = pair.lowerBound
    while nameEnd < pair.upperBound, bytes[nameEnd] != UInt8(ascii: "=") { nameEnd += 1 }
    return isOurs(bytes, ByteClass.trimmed(bytes, pair.lowerBound..<nameEnd))
  }
}

/// The token that a request carries: where it lies, and how it came. The one reading of the rule, for the data path
/// and, as `CarriedCredentials`, for the gateway's own calls.
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
  /// What Authorization holds for a program: a token, or what looks like one. Read only on routes that take tokens; it
  /// goes upstream nowhere.
  var program: ProgramCredential?

  /// Whether it brings a token of a program by Basic, which browsers remember and add to requests of other sites'
  /// pages.
  var isBasic: Bool { bearer == nil && program?.isToken ?? false }

  private static let tokenLength = 43

  private var cookie: Range<Int>?
  private var bearer: Range<Int>?
  private var authorizations = 0

  init(_ head: borrowing RequestHead, _ bytes: Span<UInt8>, cookieName: StaticString) {
    for field in head.fields {
      switch field.kind {
      case .cookie: readCookies(bytes, field.value, cookieName)
      case .authorization: readAuthorization(bytes, field.value)
      default: break
      }
    }
    judge(bytes)
  }

  /// - Parameters:
  ///   - cookies: the values of the Cookie fields, in order.
  ///   - authorizations: those of the Authorization fields.
  init(_ bytes: Span<UInt8>, cookies: [Range<Int>], authorizations: [Range<Int>], cookieName: StaticString) {
    for value in cookies { readCookies(bytes, value, cookieName) }
    for value in authorizations { readAuthorization(bytes, value) }
    judge(bytes)
  }

  private mutating func readCookies(_ bytes: Span<UInt8>, _ field: Range<Int>, _ cookieName: StaticString) {
    GatewayCookie.forEach(bytes, field) { _, name, value in
      guard GatewayCookie.isOurs(bytes, name) else { return }
      hasOurCookies = true
      // Attack: a neighbouring site's cookie without a name, that reads `moongate`, would be the second one and lock
      // the person out.
      guard let value, ByteClass.equalCase(bytes, name, cookieName) else { return }
      cookies += 1
      cookie = value
    }
  }

  private mutating func readAuthorization(_ bytes: Span<UInt8>, _ value: Range<Int>) {
    authorizations += 1
    bearer = Self.bearer(bytes, value)
    program = ProgramCredential(bytes, value, bearer: bearer)
  }

  private mutating func judge(_ bytes: Span<UInt8>) {
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
    guard value.count > 7, ByteClass.equal(bytes, value.lowerBound..<value.lowerBound + 6, "bearer"),
      bytes[value.lowerBound + 6] == 0x20
    else { return nil }
    var start = value.lowerBound + 7
    while start < value.upperBound, bytes[start] == 0x20 { start += 1 }
    return start..<value.upperBound
  }

  /// Whether the range has the form of our tokens: 43 characters of base64url. Whatever else a client sends is not
  /// looked up.
  static func isToken(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    guard range.count == tokenLength else { return false }
    for index in range {
      let byte = bytes[index]
      guard
        ByteClass.isDigit(byte) || (byte | 0x20) &- 0x61 < 26 || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
      else { return false }
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
