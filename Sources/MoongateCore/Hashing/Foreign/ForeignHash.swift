import Crypto
import CryptoExtras
import Foundation
import MoongateSDK

/// A password hash of another program, in one of the formats of `ForeignFormat.all`.
package struct ForeignHash: Sendable, Equatable {
  enum Function: Sendable, Equatable {
    case pbkdf2(ForeignDigest, iterations: Int, salt: [UInt8])
    case scrypt(ScryptCost, salt: [UInt8])
    /// scrypt, whose result encrypts the signer key of a project (https://github.com/firebase/scrypt).
    case firebase(ScryptCost, salt: [UInt8], signerKey: [UInt8])
    /// - Parameter setting: the whole text, which the function returns if the secret is right.
    case crypt(ForeignCrypt, rounds: Int, saltLength: Int, setting: String)
    /// A single digest of the secret and the salt.
    case digest(ForeignDigest, salt: [UInt8], isSaltFirst: Bool)
  }

  let function: Function
  let digest: [UInt8]

  /// - Throws: if its digest is too short or too long, if it has no salt and is not a single digest, or if it is above
  ///   the bound of `HashWork.largest`.
  init(_ function: Function, _ digest: [UInt8]) throws(StoredHash.Problem) {
    self.function = function
    self.digest = digest
    guard digest.count <= 128 else { throw .illFormed }
    guard digest.count >= 16, isSalted else { throw .tooWeak }
    guard work.size <= HashWork.largest else { throw .tooExpensive }
  }

  /// Whether it has a salt, or a format that allows none (`isWeak`).
  private var isSalted: Bool {
    switch function {
    case .pbkdf2(_, _, let salt), .scrypt(_, let salt), .firebase(_, let salt, _): !salt.isEmpty
    case .crypt, .digest: true
    }
  }

  /// Whether somebody who has the hash finds the password of most users within hours: it is MD5, or has no salt.
  package var isWeak: Bool {
    switch function {
    case .crypt(.md5, _, _, _), .digest(.md5, _, _): true
    case .digest(_, let salt, _): salt.isEmpty
    default: false
    }
  }

  /// The kind of hash, as providers declare which kinds they accept.
  package var kind: SecretHashKind {
    switch function {
    case .pbkdf2: .pbkdf2
    case .scrypt, .firebase: .scrypt
    case .crypt(.md5, _, _, _), .digest(.md5, _, _): .md5
    case .crypt: .shaCrypt
    case .digest: .saltedDigest
    }
  }

  /// The work of comparing a secret with it.
  package var work: ForeignWork {
    switch function {
    case .pbkdf2(let name, let iterations, _):
      .pbkdf2(name, iterations: iterations * ((digest.count + name.size - 1) / name.size))
    case .scrypt(let cost, _), .firebase(let cost, _, _): .scrypt(cost)
    case .crypt(let name, let rounds, let saltLength, _): .crypt(name, rounds: rounds, saltLength: saltLength)
    case .digest(let name, _, _): .digest(name)
    }
  }

  /// Compares in constant time.
  package func matches(_ secret: [UInt8]) throws(HashingFault) -> Bool {
    // Attack: C strings end at a NUL, and HMAC fills its key up with them, so "right\0" would be right.
    let hasNUL = secret.contains(0)
    let made = try compute(hasNUL ? secret.map { $0 == 0 ? 1 : $0 } : secret)
    let isTooLong = if case .crypt = function { secret.count > ForeignCrypt.longestSecret } else { false }
    return constantTimeEquals(made, digest) && !hasNUL && !isTooLong
  }

  private func compute(_ secret: [UInt8]) throws(HashingFault) -> [UInt8] {
    switch function {
    case .pbkdf2(let name, let iterations, let salt):
      return try ForeignWork.pbkdf2(secret, name, salt: salt, iterations: iterations, length: digest.count)
    case .scrypt(let cost, let salt): return try cost(secret, salt, length: digest.count)
    case .firebase(let cost, let salt, let signerKey):
      let key = SymmetricKey(data: try cost(secret, salt, length: 64).prefix(32))
      guard let nonce = try? AES._CTR.Nonce(nonceBytes: [UInt8](repeating: 0, count: 16)),
        let sealed = try? AES._CTR.encrypt(signerKey, using: key, nonce: nonce)
      else { throw .unreadable(.illFormed) }
      return Array(sealed)
    case .crypt(let name, _, _, let setting): return try name(secret, setting)
    case .digest(let name, let salt, let isSaltFirst): return name(isSaltFirst ? salt + secret : secret + salt)
    }
  }
}
