import MoongateCore
import MoongateSDK
import Testing

/// Test vectors from libargon2 and crypt_blowfish.
@Suite("Hashes that are kept or imported") struct StoredHashTests {
  let hashing: SecretHashing

  init() throws {
    hashing = SecretHashing(
      keys: try KeyRing(master: [UInt8](repeating: 7, count: 32)), random: SeededRandom(), cost: .cheap)
  }

  @Test(
    "are judged as they were made",
    arguments: [
      ("$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", "password"),
      ("$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$iekCn0Y3spW+sCcFanM2xBT63UP2sghkUoHLIUpWRS8", "password"),
      ("$argon2i$m=256,t=2,p=1$c29tZXNhbHQ$/U3YPXYsSb3q9XxHvc0MLxur+GP960kN9j7emXX8zwY", "password"),
      ("$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", "U*U"),
      ("$2b$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", "U*U"),
      ("$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", "U*U"),
    ])
  func imported(hash: String, secret: String) throws {
    guard case .right(let rehashed?) = try hashing.verify(Array(secret.utf8), against: hash) else {
      Issue.record("refused")
      return
    }
    #expect(rehashed.hasPrefix("$argon2id$v=19$m=8,t=1,p=1,keyid="), "hashed anew, with the pepper")
    #expect(try hashing.verify(Array(secret.utf8), against: rehashed) == .right(rehashed: nil))
    #expect(try hashing.verify(Array((secret + "x").utf8), against: hash) == .wrong)
    #expect(try hashing.verify(Array((secret + "\0x").utf8), against: hash) == .wrong, "no C text ends the comparison")
    #expect(try hashing.verify([], against: hash) == .wrong)
  }

  /// Attack: bcrypt judges the first 72 bytes, so a mistyped or guessed ending would become the password. With 72 bytes
  /// or more, what was typed may be a part of the password, or more than it.
  @Test("a bcrypt hash of a long password is kept, because only 72 bytes are judged") func longBcrypt() throws {
    let hash = "$2a$05$abcdefghijklmnopqrstuu5s2v8.iXieOjg/.AySBTTZIIVFJeBui"
    let secret = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    for ending in ["", "chars after 72 are ignored", "XYZ"] {
      #expect(try hashing.verify(Array((secret + ending).utf8), against: hash) == .right(rehashed: nil))
    }
    #expect(try hashing.verify(Array(secret.utf8).dropLast(), against: hash) == .wrong)
    #expect(try hashing.verify(Array((secret + "\0").utf8), against: hash) == .wrong)
  }

  @Test("with 71 bytes, bcrypt has judged the whole password") func wholeBcrypt() throws {
    // libxcrypt: crypt of 71 times "a".
    let hash = "$2b$05$CCCCCCCCCCCCCCCCCCCCC.jDz2X1654twnmK.2.4vJ3dod/JjJM6y"
    guard case .right(_?) = try hashing.verify([UInt8](repeating: 0x61, count: 71), against: hash) else {
      Issue.record("not hashed anew")
      return
    }
    #expect(try hashing.verify([UInt8](repeating: 0x61, count: 72), against: hash) == .wrong)
  }

  @Test(
    "what cannot be judged says why",
    arguments: [
      ("", .unknownKind), ("plain", .unknownKind), ("$1$abc$def", .illFormed), ("$2x$05$CCCC", .unknownKind),
      ("$argon2d$v=19$m=256,t=2,p=1$a$b", .unknownKind),
      ("$argon2id$", .illFormed),
      ("$argon2id$v=18$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", .illFormed),
      ("$argon2id$v=19$m=256,t=2$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", .illFormed),
      ("$argon2id$v=19$m=+256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", .illFormed),
      ("$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ=$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", .illFormed),
      ("$argon2id$v=19$m=256,t=0,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", .illFormed),
      ("$argon2id$v=19$m=4294967295,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", .tooExpensive),
      ("$argon2id$v=19$m=256,t=4000000000,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", .tooExpensive),
      ("$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65", .tooWeak),
      ("$2a$31$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", .tooExpensive),
      ("$2a$14$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", .tooExpensive),
      (
        "$argon2id$v=19$m=262144,t=4,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", .tooExpensive
      ),
      ("$2a$5$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", .illFormed),
      ("$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOe", .illFormed),
      ("$2a$05$CCCCCCCCCCCCCCCCCCCC\nC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", .illFormed),
    ] as [(String, StoredHash.Problem)])
  func refused(text: String, problem: StoredHash.Problem) {
    #expect(throws: problem) { try StoredHash(text) }
    #expect(throws: HashingFault.unreadable(problem)) { try hashing.verify(Array("x".utf8), against: text) }
  }

  @Test("a secret is kept under a fresh salt and the pepper, at today's cost") func made() throws {
    let secret = Array("correct horse".utf8)
    let first = try hashing.hash(secret)
    let second = try hashing.hash(secret)
    #expect(first != second)
    guard case .argon2(let read) = try StoredHash(first) else {
      Issue.record("no Argon2")
      return
    }
    #expect(read.salt.count == 16 && read.digest.count == 32 && read.kind == .argon2id && read.version == 0x13)
    #expect(read.description == first)
    // Without the pepper, or with that of another installation, the same secret does not match.
    let bare = try Argon2Hash(secret, cost: read.cost, pepper: nil, salt: read.salt)
    #expect(bare.digest != read.digest)
    let others = SecretHashing(
      keys: try KeyRing(master: [UInt8](repeating: 8, count: 32)), random: SeededRandom(), cost: .cheap)
    #expect(throws: HashingFault.unreadable(.illFormed)) { try others.verify(secret, against: first) }
  }

  @Test("the cost that ships is Argon2id at 19 MiB, 2 passes, 1 lane; a cheaper one is raised at the next success")
  func cost() throws {
    #expect(HashCost.shipped == HashCost(memory: 19_456, passes: 2, lanes: 1))
    let secret = Array("123456".utf8)
    let cheap = try hashing.hash(secret)
    let shipped = SecretHashing(
      keys: try KeyRing(master: [UInt8](repeating: 7, count: 32)), random: SeededRandom(), cost: .shipped)
    guard case .right(let raised?) = try shipped.verify(secret, against: cheap) else {
      Issue.record("not raised")
      return
    }
    #expect(raised.hasPrefix("$argon2id$v=19$m=19456,t=2,p=1,keyid="))
    #expect(try shipped.verify(secret, against: raised) == .right(rehashed: nil))
    #expect(try hashing.verify(secret, against: raised) == .right(rehashed: nil), "and never lowered")
    #expect(try shipped.verify(secret, against: nil) == .wrong)
  }

  @Test("a former pepper is still good, and is replaced at the next success") func rotated() throws {
    let one = try MasterKeys(only: [UInt8](repeating: 7, count: 32))
    let ring = KeyRing(try #require(try one.adding([UInt8](repeating: 8, count: 32)).rotated()))
    let now = SecretHashing(keys: ring, random: SeededRandom(), cost: .cheap)
    let secret = Array("123456".utf8)
    let old = try hashing.hash(secret)
    #expect(try now.verify(Array("123457".utf8), against: old) == .wrong)
    guard case .right(let moved?) = try now.verify(secret, against: old) else {
      Issue.record("not moved")
      return
    }
    #expect(moved.contains("keyid=\(ring.pepperName)$") && !old.contains("keyid=\(ring.pepperName)$"))
    #expect(try now.verify(secret, against: moved) == .right(rehashed: nil))
  }
}
