import Foundation
import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import Password
import Testing

/// Storage of PINs and passwords.
@Suite struct SecretKeepingTests {
  /// Secrets are stored as Argon2id hashes with salt and pepper.
  @Test func secretsAreStoredAsArgon2idWithSaltAndPepper() async throws {
    let bench = try SecretsBench(cost: .shipped)
    try await bench.person(pin: nil, password: nil)
    let session = try await bench.session()
    #expect(
      await bench.enter("pin_set", "pin", ["new_pin": SecretsBench.pin], by: bench.client(session)).told == "complete")
    let kept = try #require(try await bench.record("pin"))
    #expect(kept.hasPrefix("$argon2id$v=19$m=19456,t=2,p=1,keyid="))
    guard case .argon2(let hash) = try StoredHash(kept) else {
      Issue.record("no Argon2")
      return
    }
    #expect(hash.salt.count == 16)
    // Without the pepper, the PIN does not match, so a copy of the database does not allow an offline attack.
    let bare = try Argon2Hash(Array(SecretsBench.pin.utf8), cost: hash.cost, pepper: nil, salt: hash.salt)
    #expect(bare.digest != hash.digest)
  }

  /// Parameters are stored with the hash, and raised at the next success.
  @Test func outdatedHashIsReplacedAtTheNextSuccess() async throws {
    let old = try SecretsBench(cost: .cheap)
    try await old.person()
    let bench = try SecretsBench(store: old.store, cost: .shipped)
    let session = try await bench.session()
    #expect(
      await bench.enter("pin_unlock", "pin", ["pin": SecretsBench.pin], by: bench.client(session)).told == "complete")
    #expect(await bench.login(SecretsBench.password).told == "complete")
    for provider in ["pin", "password"] as [ProviderName] {
      #expect(try await bench.record(provider)?.hasPrefix("$argon2id$v=19$m=19456,t=2,p=1,keyid=") == true)
    }
    #expect(await bench.login(SecretsBench.password).told == "complete")
    #expect(await bench.login("wrong one").told == "invalid_password")
  }

  /// Imported hashes are accepted, and replaced at the first sign-in.
  @Test func importedHashesAreReplacedAtTheFirstSignIn() async throws {
    let bench = try SecretsBench()
    let address = try #require(EmailAddress("old@example.com"))
    let administration = AccountAdministration(
      store: bench.store, providers: try ProviderRegistry(ShippedProviders.all), keys: bench.keys, clock: bench.clock,
      random: bench.random)
    let imported = ImportedAccount(
      identifiers: [ImportedAccount.Name(identifier: Identifier(address), isVerified: true)], firstName: "Old",
      records: [
        "password": ProviderRecord(
          bytes: Password().record(importing: "$2b$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"),
          version: 1)
      ])
    #expect(try await administration.add([imported]).isEmpty)
    #expect(try await administration.add([imported]) == [0], "the address is in use now")
    #expect(await bench.login("U*V", as: "old@example.com").told == "invalid_password")
    #expect(await bench.login("U*U", as: "old@example.com").told == "complete")
    let id = try #require(try await bench.store.account(holding: Identifier(address))?.id)
    #expect(try await administration.hash(of: id, for: Password())?.hasPrefix("$argon2id$") == true)
    #expect(await bench.login("U*U", as: "old@example.com").told == "complete")
  }

  /// No secret appears in logs, events or records.
  @Test func secretsAreNotInLogsEventsOrRecords() async throws {
    let folder = try ScratchFolder()
    let store = try SQLiteStore(path: folder.path("moongate.db"), keyFingerprint: [UInt8](repeating: 7, count: 16))
    let bench = try SecretsBench(store: store, cost: .cheap)
    try await bench.person(pin: nil, password: nil)
    let session = try await bench.session()
    var refusals: [Refusal?] = []
    #expect(
      await bench.enter("pin_set", "pin", ["new_pin": SecretsBench.pin], by: bench.client(session)).told == "complete")
    let next = try await bench.session()
    refusals.append(
      await bench.enter("pin_change", "pin", ["pin": "860493", "new_pin": "597382"], by: bench.client(next)).refusal)
    refusals.append(
      await bench.enter("pin_change", "pin", ["pin": SecretsBench.pin, "new_pin": "111111"], by: bench.client(next))
        .refusal)
    refusals.append(await bench.enter("pin_unlock", "pin", ["pin": "86049"], by: bench.client(next)).refusal)
    let names = ["first_name": "Asha", "last_name": "Rao", "email": "new@example.com"]
    _ = await bench.enter(
      "register_email", "password", names.merging(["password": SecretsBench.password]) { $1 }, by: bench.client())
    refusals.append(
      await bench.enter(
        "register_email", "password", names.merging(["password": "asha-rao-1"]) { $1 }, by: bench.client()
      ).refusal)
    refusals.append(await bench.login("a wrong password of mine").refusal)
    #expect(refusals.count == 5 && refusals.allSatisfy { $0 != nil })
    try await bench.audit.flush()
    let events = try await bench.store.events(limit: 1_000)
    #expect(!events.isEmpty)
    let pepper = bench.keys.peppered([]).secret
    try store.close()
    let secrets = [
      SecretsBench.pin, "860493", "597382", SecretsBench.password, "asha-rao-1", "a wrong password of mine",
      "$argon2id$",
    ]
    for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
      let bytes = try Data(contentsOf: URL(fileURLWithPath: folder.path(name)))
      for secret in secrets { #expect(bytes.range(of: Data(secret.utf8)) == nil, "\(secret) is in \(name)") }
      #expect(bytes.range(of: Data(pepper)) == nil)
    }
    let told = bench.log.lines + events.map { "\($0)" } + refusals.compactMap(\.self).map { "\($0) \($0.sentence)" }
    for secret in secrets { #expect(!told.contains { $0.contains(secret) }, "\(secret)") }
  }

  /// Unknown users cost the same number of hash operations.
  @Test func unknownUsersCostTheSameHashing() async throws {
    let permits = CountedPermits(
      SecretHashing(keys: try SecretsBench.keys(), random: SeededRandom(seed: 2), cost: .cheap))
    let bench = try SecretsBench(permits: permits)
    try await bench.person()
    let known = await bench.login("wrong one")
    let after = permits.verified
    let unknown = await bench.login("wrong one", as: "nobody@example.com")
    #expect(after == 1 && permits.verified == 2)
    var left = try #require(known.refusal)
    let right = try #require(unknown.refusal)
    left.decision = right.decision
    #expect(left == right, "one answer, byte for byte")
    // Unknown users are locked in the same way.
    for _ in 1...3 { _ = await bench.login("wrong one", as: "nobody@example.com") }
    #expect(await bench.login("wrong one", as: "nobody@example.com").refusal?.retryAfter == .seconds(900))
  }

  /// Attack: the time of a wrong password tells which addresses were imported. The work is the same for unknown users,
  /// for hashes of the gateway and for every kind of imported hash, until the last one is replaced.
  @Test func importedHashesCostEveryoneTheSame() async throws {
    let permits = RecordingPermits(
      SecretHashing(keys: try SecretsBench.keys(), random: SeededRandom(seed: 2), cost: .cheap))
    let bench = try SecretsBench(permits: permits)
    try await bench.person()
    _ = try await bench.imported(
      "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", address: "bcrypt@example.com")
    _ = try await bench.imported(
      "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
      address: "argon2@example.com")
    func works(_ password: String) async -> Set<[HashWork]> {
      var all: Set<[HashWork]> = []
      for name in ["nobody", "asha", "bcrypt", "argon2"] {
        #expect(await bench.login(password, as: "\(name)@example.com").told == "invalid_password")
        all.insert(permits.last)
      }
      return all
    }
    let three = await works("wrong one")
    #expect(three.count == 1 && three.first?.count == 3, "\(three)")
    // The owner's next sign-in replaces the hash, and costs no more than it must.
    #expect(await bench.login("password", as: "argon2@example.com").told == "complete")
    #expect(permits.last.count == 1)
    let two = await works("wrong two")
    #expect(two.count == 1 && two.first?.count == 2, "\(two)")
    #expect(await bench.login("U*U", as: "bcrypt@example.com").told == "complete")
    let one = await works("wrong three")
    #expect(one.count == 1 && one.first?.count == 1, "\(one)")
  }

  /// Accounts of Django, LDAP and Firebase sign in, and until then cost every refused attempt the same.
  @Test func hashesOfOtherProgramsAreReplacedAtTheFirstSignIn() async throws {
    let permits = RecordingPermits(
      SecretHashing(keys: try SecretsBench.keys(), random: SeededRandom(seed: 2), cost: .cheap))
    let bench = try SecretsBench(permits: permits)
    try await bench.person()
    let hashes = [
      "django": "pbkdf2_sha256$1000$aBcDeFgHiJkLmNoPqRsTuV$sBhz6SiQZR6f4FpeVTDdVpW1T+zS7A1qNhK4pS4OU1w=",
      "ldap": "{SSHA}45t+zCEyMYRqQvOJu7mAKpQLKklC9sfq",
      "crypt": "$5$abcdefgh$ruMep1ijHnJPZbETDNiumskxcX3kN4lzZd5VlsqE7eB",
      "passlib": "$scrypt$ln=10,r=8,p=1$lHLOWYtRqjWGEMIY47wXQg$2HzzKVA9yUX94yJSw0PO2/KUJYhQmcJXQqIxK0GbCyA",
    ]
    var ids: [String: String] = [:]
    for (name, hash) in hashes { ids[name] = try await bench.imported(hash, address: "\(name)@example.com") }
    var works: Set<[HashWork]> = []
    for name in ["nobody", "asha"] + hashes.keys.sorted() {
      #expect(await bench.login("wrong horse", as: "\(name)@example.com").told == "invalid_password")
      works.insert(permits.last)
    }
    #expect(works.count == 1 && works.first?.count == 5, "\(works)")
    for (name, id) in ids {
      #expect(await bench.login("correct horse", as: "\(name)@example.com").told == "complete")
      #expect(try await bench.record("password", of: id)?.hasPrefix("$argon2id$") == true)
      #expect(await bench.login("correct horse", as: "\(name)@example.com").told == "complete")
    }
    #expect(try await bench.store.importedHashes(of: "password").isEmpty)
  }

  /// Attack: bcrypt judges 72 bytes, so a mistyped ending was accepted and became the password for good.
  @Test func aPasswordThatWasNotJudgedAsAWholeIsNotKept() async throws {
    let bench = try SecretsBench()
    let hash = "$2b$06$dFIpb62ArixQJq2PPMxMbu3f80sFA0pCnr5I9Ky.CozhQIqKF1SSq"
    let id = try await bench.imported(hash, address: "long@example.com")
    let right = String(String(repeating: "seven green bottles stand upon a wall ", count: 3).prefix(80))
    for password in [right.dropLast(3) + "XYZ", right.prefix(72), right[...]] {
      #expect(await bench.login(String(password), as: "long@example.com").told == "complete")
      #expect(try await bench.record("password", of: id) == hash)
    }
    #expect(await bench.login(String(right.prefix(71)), as: "long@example.com").told == "invalid_password")
    #expect(try await bench.store.importedHashes(of: "password") == [.bcrypt(rounds: 6)])
  }

  /// macOS sent decomposed letters, and other programs hashed what came.
  @Test func aPasswordOfAnotherNormalizationFormIsAccepted() async throws {
    let bench = try SecretsBench()
    let hash =
      "$argon2id$v=19$m=19456,t=2,p=1$5nrsPwpLzmjQFbkzKfdyhA$QWjvNOdhSxLabN+cL39qOANQqBUpYrSronzPS7E66Ss"
    let id = try await bench.imported(hash, address: "decomposed@example.com")
    let decomposed = "Ju\u{308}rgen-cafe\u{301}-77-garc\u{327}on"
    #expect(await bench.login("Jurgen-cafe-77-garcon", as: "decomposed@example.com").told == "invalid_password")
    #expect(await bench.login(decomposed, as: "decomposed@example.com").told == "complete")
    #expect(try await bench.record("password", of: id) != hash)
    for typed in ["Jürgen-café-77-garçon", decomposed] {
      #expect(await bench.login(typed, as: "decomposed@example.com").told == "complete")
    }
    #expect(try await bench.store.importedHashes(of: "password").isEmpty)
  }

  /// Unknown users take the same processor time with the shipped hashing cost. Processor time does not depend on the
  /// load of the machine. The pairs alternate. One of several rounds must show no difference, which would be impossible
  /// if there were one.
  @Test func unknownUsersTakeTheSameTime() async throws {
    var differences: [Double] = []
    for _ in 0..<5 {
      let bench = try SecretsBench(cost: .shipped)
      try await bench.person()
      var (known, unknown): ([Double], [Double]) = ([], [])
      for index in 0..<30 {
        // Four attempts each before a lock; then the clock advances.
        if index % 4 == 0 { bench.clock.advance(by: .seconds(86_400 * 2)) }
        let start = Self.processorTime()
        #expect(await bench.login("wrong one").told == "invalid_password")
        let middle = Self.processorTime()
        #expect(await bench.login("wrong one", as: "nobody@example.com").told == "invalid_password")
        known.append(middle - start)
        unknown.append(Self.processorTime() - middle)
      }
      let (left, right) = (known.sorted()[known.count / 2], unknown.sorted()[unknown.count / 2])
      differences.append(abs(left / right - 1))
      if differences.last ?? 1 <= 0.05 { return }
    }
    Issue.record("medians differ by \(differences.map { "\(Int($0 * 1000)) ‰" })")
  }

  /// The processor time of this process in seconds.
  private static func processorTime() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
