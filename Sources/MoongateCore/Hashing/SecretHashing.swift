import CArgon2
import MoongateSDK

/// What hashing and comparing mean, without threads: everything here takes its time where it is called.
package struct SecretHashing: Sendable {
  private let keys: KeyRing
  private let random: any RandomSource
  private let cost: HashCost

  package init(keys: KeyRing, random: any RandomSource, cost: HashCost) {
    self.keys = keys
    self.random = random
    self.cost = cost
  }

  /// A PHC string with a fresh salt of 16 bytes. The secret is keyed with the pepper before, so that a copy of the
  /// database alone cannot be guessed against, not even for the million PINs that there are.
  /// - Parameter salt: in place of a fresh one: 16 bytes that nobody outside can know.
  package func hash(_ secret: [UInt8], salt: [UInt8]? = nil) throws(HashingFault) -> String {
    let (input, pepper) = keys.peppered(secret)
    return try Argon2Hash(input, cost: cost, pepper: pepper, salt: salt ?? random.bytes(16)).description
  }

  /// Compares in constant time. Without a hash the same work is done for nothing.
  /// - Parameters:
  ///   - salt: of the hash that may have to be made anew; nil: a fresh one.
  ///   - last: what this secret was compared with before: stored hashes that share cost and salt take the work of one.
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
      // One that another pepper was in, which is not in the ring, cannot be judged.
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
    // Attack: C text ends at a NUL, so "right\0anything" would be right. bcrypt itself reads 72 bytes: those who had a
    // longer password before they were imported typed it into a program that did the same, and are hashed anew, whole,
    // right after.
    let hasNUL = secret.contains(0)
    let text = (hasNUL ? secret.map { $0 == 0 ? 1 : $0 } : secret).prefix(72).map { CChar(bitPattern: $0) } + [0]
    var output = [CChar](repeating: 0, count: Int(CARGON2_BCRYPT_SIZE))
    guard cargon2_bcrypt(text, stored, &output) == 0 else { throw .unreadable(.illFormed) }
    let made = output.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    return constantTimeEquals(made, Array(stored.utf8)) && !hasNUL
  }
}
