import CArgon2
import MoongateSDK

/// Hashes and compares secrets synchronously on the calling thread.
package struct SecretHashing: Sendable {
  private let keys: KeyRing
  private let random: any RandomSource
  private let cost: HashCost

  package init(keys: KeyRing, random: any RandomSource, cost: HashCost) {
    self.keys = keys
    self.random = random
    self.cost = cost
  }

  /// Returns a PHC string with a fresh 16-byte salt. The secret is first keyed with the pepper, so that a copy of the
  /// database alone does not allow guessing, not even for the million possible PINs.
  /// - Parameter salt: a 16-byte salt to use instead. It must not be computable outside.
  package func hash(_ secret: [UInt8], salt: [UInt8]? = nil) throws(HashingFault) -> String {
    let (input, pepper) = keys.peppered(secret)
    return try Argon2Hash(input, cost: cost, pepper: pepper, salt: salt ?? random.bytes(16)).description
  }

  /// Compares in constant time. Without a stored hash, it does the same amount of work.
  /// - Parameters:
  ///   - salt: the salt if the secret must be rehashed; nil for a fresh one.
  ///   - last: caches the previous hash of this secret, so that stored hashes with the same cost and salt take one
  ///     hash.
  package func verify(
    _ secret: [UInt8], against text: String?, salt: [UInt8]? = nil, remembering last: LastHash = LastHash()
  ) throws(HashingFault) -> HashVerdict {
    guard let text else {
      let (input, pepper) = keys.peppered(secret)
      let made = try Argon2Hash(input, cost: cost, pepper: pepper, salt: [UInt8](repeating: 0, count: 16))
      _ = constantTimeEquals(made.digest, [UInt8](repeating: 0, count: made.digest.count))
      return .wrong
    }
    switch try stored(text) {
    case .argon2(let stored):
      // A hash made with a pepper that is not in the ring cannot be checked.
      guard let input = stored.pepper.map({ keys.peppered(secret, by: $0) }) ?? secret else {
        throw .unreadable(.illFormed)
      }
      let made = try last.hash(of: input, like: stored)
      guard constantTimeEquals(made, stored.digest) else { return .wrong }
      return .right(rehashed: stored.isCurrent(cost, pepper: keys.pepperName) ? nil : try hash(secret, salt: salt))
    case .bcrypt(let stored):
      guard try Self.bcrypt(secret, matches: stored) else { return .wrong }
      return .right(rehashed: try hash(secret, salt: salt))
    }
  }

  private func stored(_ text: String) throws(HashingFault) -> StoredHash {
    do { return try StoredHash(text) } catch { throw .unreadable(error) }
  }

  private static func bcrypt(_ secret: [UInt8], matches stored: String) throws(HashingFault) -> Bool {
    // Attack: C strings end at a NUL, so "right\0anything" would be right. bcrypt itself only reads 72 bytes. Imported
    // users with longer passwords set them in a program with the same limit; their full password is rehashed right
    // after this check.
    let hasNUL = secret.contains(0)
    let text = (hasNUL ? secret.map { $0 == 0 ? 1 : $0 } : secret).prefix(72).map { CChar(bitPattern: $0) } + [0]
    var output = [CChar](repeating: 0, count: Int(CARGON2_BCRYPT_SIZE))
    guard cargon2_bcrypt(text, stored, &output) == 0 else { throw .unreadable(.illFormed) }
    let made = output.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    return constantTimeEquals(made, Array(stored.utf8)) && !hasNUL
  }
}
