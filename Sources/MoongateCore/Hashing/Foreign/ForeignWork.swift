import CArgon2
import Crypto
import CryptoExtras
import Foundation

/// The hash functions that other programs build password hashes from.
package enum ForeignDigest: String, Sendable, CaseIterable {
  case md5, sha1, sha256, sha384, sha512

  /// In bytes.
  var size: Int {
    switch self {
    case .md5: Insecure.MD5.byteCount
    case .sha1: Insecure.SHA1.byteCount
    case .sha256: SHA256.byteCount
    case .sha384: SHA384.byteCount
    case .sha512: SHA512.byteCount
    }
  }

  var pbkdf2: KDF.Insecure.PBKDF2.HashFunction {
    switch self {
    case .md5: .insecureMD5
    case .sha1: .insecureSHA1
    case .sha256: .sha256
    case .sha384: .sha384
    case .sha512: .sha512
    }
  }

  func callAsFunction(_ bytes: [UInt8]) -> [UInt8] {
    switch self {
    case .md5: Array(Insecure.MD5.hash(data: bytes))
    case .sha1: Array(Insecure.SHA1.hash(data: bytes))
    case .sha256: Array(SHA256.hash(data: bytes))
    case .sha384: Array(SHA384.hash(data: bytes))
    case .sha512: Array(SHA512.hash(data: bytes))
    }
  }
}

/// The functions of libcrypt whose time depends on the length of the secret.
package enum ForeignCrypt: String, Sendable, CaseIterable {
  case md5, sha256, sha512

  /// The beginning of its hashes.
  var prefix: String {
    switch self {
    case .md5: "$1$"
    case .sha256: "$5$"
    case .sha512: "$6$"
    }
  }

  /// The most bytes of a salt.
  var longestSalt: Int { self == .md5 ? 8 : 16 }

  /// The most bytes of a secret that it hashes. A longer secret is never right.
  ///
  /// Attack: each round of SHA-crypt hashes the secret up to twice, so a password of 128 bytes keeps a thread busy for
  /// twice to four times as long as one of 15.
  package static let longestSecret = 64

  /// Hashes the beginning of a secret without NUL.
  /// - Parameter setting: a hash, or its beginning with the salt.
  func callAsFunction(_ secret: [UInt8], _ setting: String) throws(HashingFault) -> [UInt8] {
    var output = [CChar](repeating: 0, count: Int(CARGON2_CRYPT_SIZE))
    let text = secret.prefix(Self.longestSecret).map { CChar(bitPattern: $0) } + [0]
    guard cargon2_crypt(text, setting, &output) == 0 else { throw .unreadable(.illFormed) }
    return output.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
  }
}

/// The cost of scrypt (RFC 7914 section 2).
package struct ScryptCost: Sendable, Hashable {
  /// The binary logarithm of N.
  let logarithm: Int
  /// r.
  let blockSize: Int
  /// p.
  let lanes: Int

  /// - Throws: if it takes more than 256 MiB, or is above the bounds of the library.
  init(logarithm: Int, blockSize: Int, lanes: Int) throws(StoredHash.Problem) {
    guard logarithm >= 1, blockSize >= 1, lanes >= 1 else { throw .illFormed }
    // N < 2^(128 * r / 8) (RFC 7914 section 2). The library refuses others, and r = 2 allows all that follow.
    guard blockSize > 1 || logarithm < 16 else { throw .illFormed }
    guard logarithm <= 20, blockSize <= 16, lanes <= 16, blockSize << logarithm <= 1 << 21 else { throw .tooExpensive }
    self.logarithm = logarithm
    self.blockSize = blockSize
    self.lanes = lanes
  }

  func callAsFunction(_ secret: [UInt8], _ salt: [UInt8], length: Int) throws(HashingFault) -> [UInt8] {
    // The parameters are within the bounds of the library, so that only memory can be missing.
    guard
      let key = try? KDF.Scrypt.deriveKey(
        from: secret, salt: salt, outputByteCount: length, rounds: 1 << logarithm, blockSize: blockSize,
        parallelism: lanes)
    else { throw .outOfMemory }
    return key.withUnsafeBytes { Array($0) }
  }
}

/// The work of one comparison with a hash of another program, without the salt and the digest.
package enum ForeignWork: Hashable, Sendable, CustomStringConvertible {
  /// - Parameter iterations: of all blocks of the digest together.
  case pbkdf2(ForeignDigest, iterations: Int)
  case scrypt(ScryptCost)
  /// - Parameter saltLength: in bytes. Each round hashes the salt, so the time depends on it.
  case crypt(ForeignCrypt, rounds: Int, saltLength: Int)
  case digest(ForeignDigest)

  /// The size in the unit of `HashWork.size`.
  var size: Int {
    switch self {
    case .pbkdf2(let digest, let iterations):
      digest == .sha384 || digest == .sha512 ? iterations : (iterations + 1) / 2
    case .scrypt(let cost): (cost.blockSize * cost.lanes * 3 << cost.logarithm) / 4
    case .crypt(_, let rounds, _): rounds
    case .digest: 1
    }
  }

  /// The stored form, such as `pbkdf2-sha256 600000`, `scrypt 14 8 1` (logarithm of N, r, p), `crypt-sha512 5000 16`
  /// (rounds, bytes of the salt).
  package var description: String {
    switch self {
    case .pbkdf2(let digest, let iterations): "pbkdf2-\(digest.rawValue) \(iterations)"
    case .scrypt(let cost): "scrypt \(cost.logarithm) \(cost.blockSize) \(cost.lanes)"
    case .crypt(let function, let rounds, let saltLength): "crypt-\(function.rawValue) \(rounds) \(saltLength)"
    case .digest(let digest): "digest-\(digest.rawValue)"
    }
  }

  /// - Returns: nil unless the text is a `description`.
  init?(_ text: String) {
    let words = text.split(separator: " ", omittingEmptySubsequences: false)
    let numbers = words.dropFirst().compactMap { Int($0) }
    guard let name = words.first, numbers.count == words.count - 1, numbers.allSatisfy({ $0 > 0 }) else { return nil }
    let parts = name.split(separator: "-", omittingEmptySubsequences: false)
    let digest = parts.last.flatMap { ForeignDigest(rawValue: String($0)) }
    let crypt = parts.last.flatMap { ForeignCrypt(rawValue: String($0)) }
    switch (parts.first, parts.count, numbers.count) {
    case ("pbkdf2", 2, 1):
      guard let digest else { return nil }
      self = .pbkdf2(digest, iterations: numbers[0])
    case ("scrypt", 1, 3):
      guard let cost = try? ScryptCost(logarithm: numbers[0], blockSize: numbers[1], lanes: numbers[2]) else {
        return nil
      }
      self = .scrypt(cost)
    case ("crypt", 2, 2):
      guard let crypt, numbers[1] <= crypt.longestSalt else { return nil }
      self = .crypt(crypt, rounds: numbers[0], saltLength: numbers[1])
    case ("digest", 2, 0):
      guard let digest else { return nil }
      self = .digest(digest)
    default: return nil
    }
  }

  /// Computes a hash of the secret with a fixed salt.
  /// - Returns: the digest; for `crypt`, the text of the hash.
  @discardableResult
  func perform(of secret: [UInt8]) throws(HashingFault) -> [UInt8] {
    let salt = [UInt8](repeating: 0, count: 16)
    switch self {
    case .pbkdf2(let digest, let iterations):
      return try Self.pbkdf2(secret, digest, salt: salt, iterations: iterations, length: digest.size)
    case .scrypt(let cost): return try cost(secret, salt, length: 32)
    case .crypt(let function, let rounds, let saltLength):
      let cost = function == .md5 ? "" : "rounds=\(rounds)$"
      return try function(
        secret.map { $0 == 0 ? 1 : $0 },
        function.prefix + cost + String(repeating: ".", count: saltLength) + "$")
    case .digest(let digest): return digest(secret + salt)
    }
  }

  static func pbkdf2(_ secret: [UInt8], _ digest: ForeignDigest, salt: [UInt8], iterations: Int, length: Int)
    throws(HashingFault) -> [UInt8]
  {
    guard
      let key = try? KDF.Insecure.PBKDF2.deriveKey(
        from: secret, salt: salt, using: digest.pbkdf2, outputByteCount: length, unsafeUncheckedRounds: iterations)
    else { throw .outOfMemory }
    return key.withUnsafeBytes { Array($0) }
  }
}
