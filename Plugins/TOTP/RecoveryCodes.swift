import Crypto
import MoongateSDK

/// One-time recovery codes for a lost authenticator app.
struct RecoveryCodes: Codable, Equatable {
  static let count = 10
  /// The number of characters of a code, 5 bits each. With 50 bits, the probability of guessing one of ten codes in a
  /// million attempts is one in a hundred million.
  static let length = 10

  /// The salt, against precomputed tables.
  private let salt: [UInt8]
  /// The hashes of the unused codes.
  private(set) var hashes: [[UInt8]]

  /// Creates new codes.
  /// - Returns: the value to store, and the codes in the form `ABCDE-FGHIJ`, which are shown once.
  static func make(from randomBytes: (Int) -> [UInt8]) -> (kept: RecoveryCodes, shown: [String]) {
    // Seven bytes are 56 bits; characters after the tenth are dropped.
    let codes = (0..<count).map { _ in String(Base32.encode(randomBytes(7)).prefix(length)) }
    let salt = randomBytes(16)
    return (
      RecoveryCodes(salt: salt, hashes: codes.map { hash(Array($0.utf8), salt) }),
      codes.map { $0.grouped(by: length / 2, with: "-") }
    )
  }

  /// Placeholder for an account without codes, so that verification does the same work.
  static let none = RecoveryCodes(
    salt: [UInt8](repeating: 0, count: 16), hashes: Array(repeating: [UInt8](repeating: 0, count: 32), count: count))

  /// No codes: those of another system are not imported. The user gets new ones with the flow `totp_change`.
  static let empty = RecoveryCodes(salt: [UInt8](repeating: 0, count: 16), hashes: [])

  /// The code as it was shown, without its hyphen; nil if the input does not have the form of a code.
  static func read(_ typed: String) -> [UInt8]? {
    let code = TypedCode(typed).text
    guard code.utf8.count == length, code.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
    let letters = Array(code.uppercased().utf8)
    return letters.allSatisfy(Base32.contains) ? letters : nil
  }

  /// The codes without the used one; nil if the code does not match.
  func spending(_ code: [UInt8]) -> RecoveryCodes? {
    let hash = Self.hash(code, salt)
    var found: Int?
    // Compare all hashes, so that the time does not reveal the matching one.
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
