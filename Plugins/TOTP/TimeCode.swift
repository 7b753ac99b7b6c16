import Crypto
import MoongateSDK

/// Time-based codes (RFC 6238 over RFC 4226): HMAC-SHA-1, six digits, a new code every 30 seconds. All authenticator
/// apps support these parameters. SHA-1 is secure here, because HMAC does not depend on collision resistance.
enum TimeCode {
  static let length = 6
  /// The length of a period in milliseconds (RFC 6238 section 4.1: X = 30).
  static let period: Int64 = 30_000
  /// The length of a key in bytes (RFC 4226 section 4, R6 recommends 160 bits).
  static let keySize = 20

  /// The number of the period at a time.
  /// - Parameter now: milliseconds since the Unix epoch.
  static func step(at now: Int64) -> Int64 { now >= 0 ? now / period : 0 }

  /// The code of a period, as ASCII digits.
  static func code(_ step: Int64, key: [UInt8]) -> [UInt8] {
    let counter = withUnsafeBytes(of: UInt64(bitPattern: step).bigEndian) { Array($0) }
    let mac = Array(HMAC<Insecure.SHA1>.authenticationCode(for: counter, using: SymmetricKey(data: key)))
    return Array(OneTimeCode.truncate(mac, digits: length).utf8)
  }

  /// The result of a code.
  enum Match: Equatable {
    case none
    /// A code of a later period than the last accepted one.
    case fresh(step: Int64)
    /// A code of the last accepted period or an earlier one.
    case used
  }

  /// Compares a code with those of the current period and of the allowed drift before and after.
  /// - Parameter last: the period of the last accepted code. This code and older ones are used (RFC 6238 section 5.2).
  static func match(_ typed: [UInt8], key: [UInt8], at now: Int64, drift: Int64, after last: Int64?) -> Match {
    let current = step(at: now)
    var match = Match.none
    // Attack: the response time reveals how much of a code was right. All periods and all digits are compared.
    for step in (current - drift)...(current + drift) where constantTimeEquals(typed, code(step, key: key)) {
      match = last.map { step > $0 } ?? true ? .fresh(step: step) : .used
    }
    return match
  }
}
