import Crypto
import MoongateSDK

/// Codes that follow from a shared key and the time (RFC 6238 over RFC 4226): SHA-1, six digits, a new one every 30
/// seconds. Those are the numbers that every authenticator app knows; SHA-1 is no weakness here, since an HMAC needs no
/// freedom from collisions.
enum TimeCode {
  static let length = 6
  /// Milliseconds that a code is the current one (RFC 6238 section 4.1: X = 30).
  static let period: Int64 = 30_000
  /// Bytes of a key: as many as the hash has (RFC 4226 section 4, R6: 160 bits are recommended).
  static let keySize = 20

  /// The number of the period that a moment lies in.
  /// - Parameter now: milliseconds since the Unix epoch.
  static func step(at now: Int64) -> Int64 { now >= 0 ? now / period : 0 }

  /// The code of a period, as ASCII digits.
  static func code(_ step: Int64, key: [UInt8]) -> [UInt8] {
    let counter = withUnsafeBytes(of: UInt64(bitPattern: step).bigEndian) { Array($0) }
    let mac = Array(HMAC<Insecure.SHA1>.authenticationCode(for: counter, using: SymmetricKey(data: key)))
    // RFC 4226 section 5.3: the low four bits of the last byte say where the four bytes begin; the highest bit is
    // dropped.
    let offset = Int(mac[mac.count - 1] & 0x0f)
    var number = mac[offset..<offset + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7fff_ffff
    var digits = [UInt8](repeating: 0, count: length)
    for place in digits.indices.reversed() {
      digits[place] = UInt8(ascii: "0") + UInt8(number % 10)
      number /= 10
    }
    return digits
  }

  /// What a typed code turned out to be.
  enum Match: Equatable {
    case none
    /// The code of the period, which is later than the last one that was accepted.
    case fresh(step: Int64)
    /// The code of a period that was accepted before, or of an earlier one.
    case used
  }

  /// Looks whether a code is that of now, or of as many periods before and after as clocks may be off.
  /// - Parameter last: the period whose code was accepted last; its code and older ones are spent (RFC 6238 section
  ///   5.2).
  static func match(_ typed: [UInt8], key: [UInt8], at now: Int64, drift: Int64, after last: Int64?) -> Match {
    let current = step(at: now)
    var match = Match.none
    // Attack: the time of the answer tells how much was right. All of the periods are compared, and all digits of each.
    for step in (current - drift)...(current + drift) where constantTimeEquals(typed, code(step, key: key)) {
      match = last.map { step > $0 } ?? true ? .fresh(step: step) : .used
    }
    return match
  }
}
