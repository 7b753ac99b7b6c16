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

  /// The work of a hash that the gateway makes.
  package var ownWork: HashWork { .argon2(.argon2id, version: 0x13, cost) }

  /// Compares in constant time. Without a stored hash, it does the work of a hash of the gateway.
  /// - Parameters:
  ///   - salt: the salt if the secret must be rehashed; nil for a fresh one.
  ///   - done: the hashes of the same attempt, so that stored hashes with the same cost and salt take one hash.
  package func verify(
    _ secret: [UInt8], against text: String?, salt: [UInt8]? = nil, remembering done: AttemptHashes = AttemptHashes()
  ) throws(HashingFault) -> HashVerdict {
    guard let text else {
      let (input, pepper) = keys.peppered(secret)
      let made = try Argon2Hash(input, cost: cost, pepper: pepper, salt: [UInt8](repeating: 0, count: 16))
      done.record(ownWork, of: secret)
      _ = constantTimeEquals(made.digest, [UInt8](repeating: 0, count: made.digest.count))
      return .wrong
    }
    let hash = try self.hash(reading: text)
    switch hash {
    case .argon2(let stored):
      // A hash made with a pepper that is not in the ring cannot be checked.
      guard let input = stored.pepper.map({ keys.peppered(secret, by: $0) }) ?? secret else {
        throw .unreadable(.illFormed)
      }
      let made = try done.digest(of: input, from: secret, like: stored)
      guard constantTimeEquals(made, stored.digest) else { return .wrong }
      return .right(rehashed: stored.isCurrent(cost, pepper: keys.pepperName) ? nil : try self.hash(secret, salt: salt))
    case .bcrypt(let stored):
      let isRight = try Self.bcrypt(secret, matches: stored)
      done.record(hash.work, of: secret)
      guard isRight else { return .wrong }
      // Attack: bcrypt has judged the first 72 bytes alone, so a mistyped ending would replace the password for good.
      // Up to 71 bytes, the NUL behind the secret was judged too, so that it is the whole of the password.
      return .right(rehashed: secret.count < Self.bcryptBytes ? try self.hash(secret, salt: salt) : nil)
    case .foreign(let stored):
      let isRight = try stored.matches(secret)
      done.record(hash.work, of: secret)
      return isRight ? .right(rehashed: try self.hash(secret, salt: salt)) : .wrong
    }
  }

  /// The number of bytes that bcrypt reads, including a NUL behind the secret.
  private static let bcryptBytes = 72

  /// Computes one hash of each kind, and one of the gateway's own, for each secret for which that was not done.
  package func balance(_ kinds: Set<HashWork>, _ done: AttemptHashes) throws(HashingFault) {
    for (secret, work) in done.missing(kinds.union([ownWork])) {
      try work.perform(of: secret)
      done.record(work, of: secret)
    }
  }

  private func hash(reading text: String) throws(HashingFault) -> StoredHash {
    do { return try StoredHash(text) } catch { throw .unreadable(error) }
  }

  private static func bcrypt(_ secret: [UInt8], matches stored: String) throws(HashingFault) -> Bool {
    // Attack: C strings end at a NUL, so "right\0anything" would be right.
    let hasNUL = secret.contains(0)
    let text =
      (hasNUL ? secret.map { $0 == 0 ? 1 : $0 } : secret).prefix(bcryptBytes).map { CChar(bitPattern: $0) } + [0]
    var output = [CChar](repeating: 0, count: Int(CARGON2_CRYPT_SIZE))
    guard cargon2_crypt(text, stored, &output) == 0 else { throw .unreadable(.illFormed) }
    let made = output.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    return constantTimeEquals(made, Array(stored.utf8)) && !hasNUL
  }
}
