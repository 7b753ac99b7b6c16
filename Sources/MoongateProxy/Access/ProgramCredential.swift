import Foundation
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
    // RFC 4648 section 4, with padding, and only the canonical encoding.
    let encoded = String(decoding: (start..<value.upperBound).map { bytes[$0] }, as: UTF8.self)
    guard let data = Data(base64Encoded: encoded), data.base64EncodedString() == encoded else {
      self = .malformedBasic("it is not base64")
      return
    }
    let pair = Array(data)
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
