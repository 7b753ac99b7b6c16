import MoongateCore
import MoongateSDK

/// The token of a request and how it was sent. This is the only parser of these rules, for the data path and, through
/// `CarriedCredentials`, for the gateway's own calls.
struct Credentials {
  /// The range in the head's bytes, with the length and alphabet of a session token.
  var token: Range<Int>?
  /// Whether the token was sent as `Authorization: Bearer`, possibly in addition to a cookie.
  var isBearer = false
  /// Whether the token was sent as a cookie, possibly in addition to Bearer.
  var isCookie = false
  /// Whether a Bearer value that may be a session token was not checked. It is not forwarded.
  var isBearerUnchecked = false
  /// Whether cookie and Bearer differ, or Authorization occurs more than once: status 400.
  var isContradictory = false
  /// The number of session cookies.
  private(set) var cookies = 0
  /// Whether the token is that of a frame's cookie.
  private(set) var isFramed = false
  /// Whether a Cookie field contains a gateway cookie, which is not forwarded.
  var hasOurCookies = false
  /// The access token of a program in Authorization, or a value that resembles one. It is used only on routes that
  /// accept tokens, and never forwarded.
  var program: ProgramCredential?

  /// Whether an access token was sent by Basic authentication, which browsers remember and add to cross-site requests.
  var isBasic: Bool { bearer == nil && program?.isToken ?? false }

  private static let tokenLength = 43

  private var cookie: Range<Int>?
  private var framedCookie: Range<Int>?
  private var framedCookies = 0
  private var bearer: Range<Int>?
  private var authorizations = 0

  /// - Parameters:
  ///   - cookieName: the name of the session cookie.
  ///   - framedName: that of the session cookie of frames; nil if no route may be shown in one.
  init(
    _ head: borrowing RequestHead, _ bytes: Span<UInt8>, cookieName: StaticString, framedName: StaticString? = nil
  ) {
    for field in head.fields {
      switch field.kind {
      case .cookie: readCookies(bytes, field.value, cookieName, framedName)
      case .authorization: readAuthorization(bytes, field.value)
      default: break
      }
    }
    judge(bytes)
  }

  /// - Parameters:
  ///   - cookies: the values of the Cookie fields, in order.
  ///   - authorizations: the values of the Authorization fields.
  init(
    _ bytes: Span<UInt8>, cookies: [Range<Int>], authorizations: [Range<Int>], cookieName: StaticString,
    framedName: StaticString? = nil
  ) {
    for value in cookies { readCookies(bytes, value, cookieName, framedName) }
    for value in authorizations { readAuthorization(bytes, value) }
    judge(bytes)
  }

  /// Whether the request has the session cookie of a frame, and no other session cookie. It does not count before
  /// `useFramedCookie`.
  var hasFramedCookie: Bool { framedCookies > 0 && cookies == 0 }

  /// Makes the session cookie of a frame count like the usual one.
  mutating func useFramedCookie(_ bytes: Span<UInt8>) {
    guard hasFramedCookie else { return }
    (cookies, cookie) = (framedCookies, framedCookie)
    (token, isBearer, isFramed) = (nil, false, true)
    judge(bytes)
  }

  private mutating func readCookies(
    _ bytes: Span<UInt8>, _ field: Range<Int>, _ cookieName: StaticString, _ framedName: StaticString?
  ) {
    GatewayCookieBytes.forEach(bytes, field) { _, name, value in
      guard GatewayCookieBytes.isOurs(bytes, name) else { return }
      hasOurCookies = true
      // Attack: a nameless cookie of a sibling site with the value `moongate` would count as a second session cookie
      // and lock the user out.
      guard let value else { return }
      if ByteClass.equalCase(bytes, name, cookieName) {
        cookies += 1
        cookie = value
      } else if let framedName, ByteClass.equalCase(bytes, name, framedName) {
        framedCookies += 1
        framedCookie = value
      }
    }
  }

  private mutating func readAuthorization(_ bytes: Span<UInt8>, _ value: Range<Int>) {
    authorizations += 1
    bearer = Self.bearer(bytes, value)
    program = ProgramCredential(bytes, value, bearer: bearer)
  }

  private mutating func judge(_ bytes: Span<UInt8>) {
    if authorizations > 1 { isContradictory = true }
    // With two session cookies, one may have been set by an attacker from a sibling domain.
    if cookies > 1 {
      isBearerUnchecked = bearer.map { Self.isToken(bytes, $0) } ?? false
      return
    }
    if let cookie, let bearer, !Self.equal(bytes, cookie, bearer) { isContradictory = true }
    guard let candidate = cookie ?? bearer, Self.isToken(bytes, candidate) else { return }
    token = candidate
    isCookie = cookie != nil
    isBearer = bearer != nil
  }

  /// Parses `Bearer` 1*SP token68 (RFC 6750 section 2.1). The scheme is case-insensitive.
  private static func bearer(_ bytes: Span<UInt8>, _ value: Range<Int>) -> Range<Int>? {
    guard value.count > 7, ByteClass.equal(bytes, value.lowerBound..<value.lowerBound + 6, "bearer"),
      bytes[value.lowerBound + 6] == 0x20
    else { return nil }
    var start = value.lowerBound + 7
    while start < value.upperBound, bytes[start] == 0x20 { start += 1 }
    return start..<value.upperBound
  }

  /// Whether the range has the form of a session token: 43 characters of base64url. Other values are not looked up.
  static func isToken(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    guard range.count == tokenLength else { return false }
    for index in range where !Base64URL.contains(bytes[index]) { return false }
    return true
  }

  private static func equal(_ bytes: Span<UInt8>, _ left: Range<Int>, _ right: Range<Int>) -> Bool {
    guard left.count == right.count else { return false }
    var difference: UInt8 = 0
    for offset in 0..<left.count { difference |= bytes[left.lowerBound + offset] ^ bytes[right.lowerBound + offset] }
    return difference == 0
  }
}
