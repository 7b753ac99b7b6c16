import MoongateSDK
import Testing

@testable import MoongateCore

/// What a comparison costs, and what an attempt must do beside it.
@Suite struct HashWorkTests {
  private let hashing: SecretHashing
  /// bcrypt with 2^5 rounds, of "U*U".
  private let bcrypt = "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"
  private let argon2 = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"

  init() throws {
    hashing = SecretHashing(
      keys: try KeyRing(master: [UInt8](repeating: 7, count: 32)), random: SeededRandom(), cost: .cheap)
  }

  @Test func textIsReadBack() throws {
    for text in ["bcrypt 12", "argon2id 19 65536 3 4", "argon2i 16 256 2 1"] {
      #expect(HashWork(text)?.description == text)
    }
    #expect(try StoredHash(bcrypt).work == .bcrypt(rounds: 5))
    #expect(
      try StoredHash(argon2).work == .argon2(.argon2id, version: 19, HashCost(memory: 256, passes: 2, lanes: 1)))
    for text in ["", "bcrypt", "bcrypt 3", "bcrypt 32", "bcrypt 5 5", "argon2d 19 1 1 1", "argon2id 19 1 1", "sha 1"] {
      #expect(HashWork(text) == nil)
    }
  }

  @Test func foreignHashesHaveNoPepper() throws {
    #expect(try StoredHash(bcrypt).isForeign && StoredHash(argon2).isForeign)
    #expect(try !StoredHash(hashing.hash([1])).isForeign)
  }

  @Test func everyKindCanBePerformed() throws {
    for kind in [HashWork.bcrypt(rounds: 4), try StoredHash(argon2).work, hashing.ownWork] { try kind.perform() }
  }

  /// Attack: the cost of an imported hash, or the number of comparisons, tells by time who has an account.
  @Test func everyRefusedAttemptDoesTheSameWork() throws {
    let kinds: Set<HashWork> = try [StoredHash(bcrypt).work, StoredHash(argon2).work]
    let salt = [UInt8](repeating: 3, count: 16)
    let claimants = try (0..<4).map { try hashing.hash([9, $0], salt: salt) }
    for secrets in [["wrong"], ["wrong", "wro\u{301}ng"]] {
      var works: [[HashWork]] = []
      for stored in [[nil], [claimants[0]], claimants, [bcrypt], [argon2], [claimants[0], bcrypt]] as [[String?]] {
        let done = AttemptHashes()
        for hash in stored {
          for secret in secrets {
            #expect(try hashing.verify(Array(secret.utf8), against: hash, salt: salt, remembering: done) == .wrong)
          }
        }
        try hashing.balance(kinds, done)
        works.append(done.works)
      }
      #expect(works[0].count == 3 * secrets.count)
      #expect(Set(works).count == 1, "\(works)")
    }
  }

  /// An import is where most installations begin: none of these costs keeps a thread busy for seconds.
  @Test func largestHashesAreBounded() {
    #expect(HashWork.bcrypt(rounds: 13).size == HashWork.largest)
    #expect(
      HashWork.argon2(.argon2id, version: 19, HashCost(memory: 262_144, passes: 3, lanes: 1)).size == HashWork.largest)
    #expect(HashWork.argon2(.argon2id, version: 19, .shipped).size * 20 < HashWork.largest)
  }

  @Test func poolBalancesWithItsPermit() async throws {
    let pool = HashingPool(
      keys: try KeyRing(master: [UInt8](repeating: 7, count: 32)), random: SeededRandom(), cost: .cheap, threads: 1,
      queue: 0)
    let hasher = try #require(await pool.acquirePermit(for: [1]) as? any BalancingHasher)
    #expect(try await hasher.verify([1], against: nil) == .wrong)
    let before = MetricText.write(pool.families)
    await hasher.balance([])
    #expect(MetricText.write(pool.families) == before, "without imported hashes there is nothing to do")
    await hasher.balance([.bcrypt(rounds: 4)])
    #expect(MetricText.write(pool.families) != before)
  }
}
