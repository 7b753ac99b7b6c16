import MoongateCore

/// The credentials of a program in Authorization: `Bearer mgt_…`, or `Basic` with a token as password (RFC 7617) for
/// clients that support nothing else.
///
/// Attack, or more often a mistake: a token with another scheme, or as the user name of `Basic` (`curl -u mgt_…:`). It
/// is not accepted, and must not be forwarded to the upstream, which could log it.
enum ProgramCredential: Equatable {
  /// A value with the form of an access token.
  case token([UInt8])
  /// A value that begins like an access token but has a wrong length or alphabet, or is in the wrong place.
  case malformedToken([UInt8])
  /// Basic authentication with a password that is not an access token.
  case otherPassword
  /// Basic authentication that cannot be parsed.
  case malformedBasic(String)

  /// Whether the value is, or was meant as, an access token. It is not forwarded.
  var isToken: Bool {
    switch self {
    case .token, .malformedToken: true
    case .otherPassword, .malformedBasic: false
    }
  }

  /// The maximum length of a Basic value, in characters.
  private static let longest = 1024

  /// - Parameters:
  ///   - value: the value of the Authorization field.
  ///   - bearer: the value after `Bearer`, if that is the scheme.
  /// - Returns: nil for another scheme and for a Bearer value that is not an access token.
  init?(_ bytes: Span<UInt8>, _ value: Range<Int>, bearer: Range<Int>?) {
    if let bearer {
      guard bearer.count >= Self.prefixLength,
        ByteClass.equalCase(bytes, bearer.lowerBound..<bearer.lowerBound + Self.prefixLength, AccessTokenSecret.prefix)
      else { return nil }
      self.init(secret: bearer.map { bytes[$0] })
      return
    }
    guard value.count >= 5, ByteClass.equal(bytes, value.lowerBound..<value.lowerBound + 5, "basic"),
      value.count == 5 || bytes[value.lowerBound + 5] == 0x20
    else {
      guard let misplaced = Self.misplacedToken(bytes, value) else { return nil }
      self = .malformedToken(misplaced)
      return
    }
    var start = value.lowerBound + 5
    while start < value.upperBound, bytes[start] == 0x20 { start += 1 }
    guard value.upperBound - start <= Self.longest else {
      self = .malformedBasic("it is longer than \(Self.longest) characters")
      return
    }
    guard let pair = Base64.decode(bytes, start..<value.upperBound) else {
      self = .malformedBasic("it is not base64")
      return
    }
    guard let colon = pair.firstIndex(of: UInt8(ascii: ":")) else {
      self = .malformedBasic("it has no colon between the user and the password")
      return
    }
    // RFC 7617 section 2: neither part may contain control characters.
    guard !pair.contains(where: { $0 < 0x20 || $0 == 0x7f }) else {
      self = .malformedBasic("it contains a control character")
      return
    }
    let password = Array(pair[(colon + 1)...])
    if password.starts(with: Self.prefix) {
      self.init(secret: password)
    } else if pair.starts(with: Self.prefix) {
      self = .malformedToken(Array(pair[..<colon].prefix(64)))
    } else {
      self = .otherPassword
    }
  }

  /// The value after another scheme, or without a scheme, if it begins like an access token.
  private static func misplacedToken(_ bytes: Span<UInt8>, _ value: Range<Int>) -> [UInt8]? {
    var start = value.lowerBound
    if let space = value.first(where: { bytes[$0] == 0x20 }) {
      start = space
      while start < value.upperBound, bytes[start] == 0x20 { start += 1 }
      if let direct = token(bytes, value.lowerBound..<space) { return direct }
    }
    return token(bytes, start..<value.upperBound)
  }

  /// The beginning of the range, if it begins like an access token.
  private static func token(_ bytes: Span<UInt8>, _ range: Range<Int>) -> [UInt8]? {
    guard range.count > prefixLength,
      ByteClass.equalCase(bytes, range.lowerBound..<range.lowerBound + prefixLength, AccessTokenSecret.prefix)
    else { return nil }
    return range.prefix(64).map { bytes[$0] }
  }

  private static let prefix: [UInt8] = Array("\(AccessTokenSecret.prefix)".utf8)
  private static let prefixLength = 4

  private init(secret: [UInt8]) {
    let isToken =
      secret.count == AccessTokenSecret.length && Credentials.isToken(secret.span, Self.prefixLength..<secret.count)
    self = isToken ? .token(secret) : .malformedToken(Array(secret.prefix(64)))
  }
}

/// Base64 as used in HTTP (RFC 4648 section 4): with padding, and only the canonical encoding.
enum Base64 {
  /// - Returns: nil if the range contains anything else.
  static func decode(_ bytes: Span<UInt8>, _ range: Range<Int>) -> [UInt8]? {
    guard range.count.isMultiple(of: 4) else { return nil }
    var end = range.upperBound
    while end > range.lowerBound, range.upperBound - end < 2, bytes[end - 1] == UInt8(ascii: "=") { end -= 1 }
    var decoded: [UInt8] = []
    decoded.reserveCapacity(range.count / 4 * 3)
    var pending: UInt32 = 0
    var bits = 0
    for index in range.lowerBound..<end {
      guard let value = value(bytes[index]) else { return nil }
      pending = pending << 6 | value
      bits += 6
      if bits >= 8 {
        bits -= 8
        decoded.append(UInt8(truncatingIfNeeded: pending >> UInt32(bits)))
      }
    }
    // Unused bits must be zero, and the padding must match.
    guard pending & (1 << UInt32(bits) - 1) == 0, range.upperBound - end == [0: 0, 2: 1, 4: 2][bits] else { return nil }
    return decoded
  }

  private static func value(_ byte: UInt8) -> UInt32? {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(byte - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(byte - UInt8(ascii: "a")) + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte - UInt8(ascii: "0")) + 52
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }
}
