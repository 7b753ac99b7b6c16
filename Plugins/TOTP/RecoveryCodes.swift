import Crypto
import MoongateSDK

/// Codes on paper for the day when the app is gone. Each opens once.
struct RecoveryCodes: Codable, Equatable {
  static let count = 10
  /// Letters of a code: 5 bits each, so 50 bits; the chance to guess one of ten in a million tries is one in a hundred
  /// million.
  static let length = 10

  /// Against tables that were made before.
  private let salt: [UInt8]
  /// Of those that are not spent.
  private(set) var hashes: [[UInt8]]

  /// Makes new ones.
  /// - Returns: what is kept, and what the person is shown once: `ABCDE-FGHIJ`.
  static func make(from randomBytes: (Int) -> [UInt8]) -> (kept: RecoveryCodes, shown: [String]) {
    // Seven bytes are 56 bits; the letters behind the tenth are dropped.
    let codes = (0..<count).map { _ in String(Base32.encode(randomBytes(7)).prefix(length)) }
    let salt = randomBytes(16)
    return (
      RecoveryCodes(salt: salt, hashes: codes.map { hash(Array($0.utf8), salt) }),
      codes.map { $0.grouped(by: length / 2, with: "-") }
    )
  }

  /// None, for an account that has none: the same work is done for it.
  static let none = RecoveryCodes(
    salt: [UInt8](repeating: 0, count: 16), hashes: Array(repeating: [UInt8](repeating: 0, count: 32), count: count))

  /// What was typed, without spaces and hyphens and in upper case; nil where it is no such code.
  static func read(_ typed: String) -> [UInt8]? {
    let letters = typed.uppercased().utf8.filter { $0 != UInt8(ascii: "-") && $0 != UInt8(ascii: " ") }
    return letters.count == length && letters.allSatisfy(Base32.contains) ? letters : nil
  }

  /// Without the code; nil where it is none of them.
  func spending(_ code: [UInt8]) -> RecoveryCodes? {
    let hash = Self.hash(code, salt)
    var found: Int?
    // All are compared, so that the time does not tell which it was.
    for (index, kept) in hashes.enumerated() where constantTimeEquals(kept, hash) { found = index }
    guard let found else { return nil }
    var rest = self
    rest.hashes.remove(at: found)
    return rest
  }

  private static func hash(_ code: [UInt8], _ salt: [UInt8]) -> [UInt8] {
    Array(HMAC<SHA256>.authenticationCode(for: code, using: SymmetricKey(data: salt)))
  }
}
