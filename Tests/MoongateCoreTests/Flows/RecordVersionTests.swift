import MoongateSDK
import MoongateStore
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateCore

/// A provider with versioned records: a record of version 1 is the secret, one of version 2 is `v2:` and the secret.
private struct Versioned: FullProvider {
  struct Unreadable: Error {}

  var version = 2
  /// The records that it was asked to upgrade, with their versions.
  let upgrades = Upgrades()
  /// Runs while the provider verifies an answer.
  let meanwhile = Meanwhile()

  final class Meanwhile: Sendable {
    private let body = Mutex<(@Sendable () async throws -> Void)?>(nil)
    func set(_ new: @escaping @Sendable () async throws -> Void) { body.withLock { $0 = new } }
    func run() async throws { try await body.withLock { $0 }?() }
  }

  final class Upgrades: Sendable {
    private let all = Mutex<[String]>([])
    var seen: [String] { all.withLock { $0 } }
    func add(_ text: String) { all.withLock { $0.append(text) } }
  }

  var descriptor: ProviderDescriptor {
    ProviderDescriptor(
      name: "toy", beginFields: [], submitFields: [InputField(name: "x", kind: .text)], settings: [],
      policy: PolicySource(file: "toy.lua", text: ""), identifierKinds: [], outcomes: [Outcome("wrong", "Wrong.")],
      facts: [FactField(name: "made_in", kind: .number, help: "The year.")], recordVersion: version)
  }

  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    .ask([InputField(name: "x", kind: .text)], state: [])
  }

  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    if step.purpose == .set { return .proved(Proof(record: .replaceOnce(Array("v\(version):new".utf8)))) }
    let expected = version == 1 ? try input.text("x") : "v\(version):" + (try input.text("x"))
    guard step.account?.record == Array(expected.utf8) else { return .refused("wrong") }
    try await meanwhile.run()
    return .proved(Proof(facts: ["made_in": "1999"]))
  }

  func upgrade(_ record: [UInt8], from version: Int) async throws -> [UInt8] {
    let text = String(decoding: record, as: UTF8.self)
    upgrades.add("\(version) \(text)")
    if text.contains("broken") { throw Unreadable() }
    return Array("v\(self.version):\(text.split(separator: ":").last ?? "")".utf8)
  }
}

/// Provider records have versions: older ones are upgraded, newer ones are refused.
@Suite struct RecordVersionTests {
  private func bench(_ provider: Versioned) async throws -> (EngineTestBench, ClientContext, account: String) {
    let bench = try await EngineTestBench(others: [provider]) { generation in
      for name in ["toy_set", "step_up"] {
        generation.flows[name] = .test(name, account: .existing, steps: [.test("toy")])
      }
      generation.flows["twice"] = .test(
        "twice", purpose: .stepUp, account: .existing, steps: [.test("toy"), .test(EngineTestBench.phone)])
    }
    let client = try await bench.registeredClient()
    return (bench, client, try #require(client.session).account.id)
  }

  private func keep(_ text: String, version: Int, _ bench: EngineTestBench, _ account: String) async throws {
    let sealed = try ProviderRecord(bytes: Array(text.utf8), version: version).sealed(
      for: "toy \(account)", by: bench.keys)
    #expect(
      try await bench.store.apply([.putProviderRecord(account: account, "toy", sealed: sealed)], at: bench.clock.now())
        == .applied(locks: []))
  }

  private func kept(_ bench: EngineTestBench, _ account: String) async throws -> ProviderRecord? {
    try await bench.store.providerRecord(of: account, for: "toy").map {
      try ProviderRecord(opening: $0, for: "toy \(account)", by: bench.keys)
    }
  }

  private func prove(_ bench: EngineTestBench, _ client: ClientContext, _ text: String, in flow: String = "step_up")
    async throws -> Refusal?
  {
    let id = try await bench.engine.create(flow, returnTo: nil, browser: nil, client: client).get().id
    _ = try await bench.engine.begin(id, provider: "toy", fields: [:], client: client).get()
    return await bench.engine.submit(id, fields: ["x": .text(text)], client: client).refusal
  }

  @Test func anOlderRecordIsUpgradedWhenAStepHasPassed() async throws {
    let provider = Versioned()
    let (bench, client, account) = try await bench(provider)
    try await keep("secret", version: 1, bench, account)
    let before = try await bench.store.providerRecord(of: account, for: "toy")
    #expect(try await prove(bench, client, "wrong")?.code.name == "wrong")
    #expect(try await bench.store.providerRecord(of: account, for: "toy") == before, "a wrong answer stores nothing")
    #expect(try await prove(bench, client, "secret") == nil)
    #expect(try await kept(bench, account) == ProviderRecord(bytes: Array("v2:secret".utf8), version: 2))
    #expect(Set(provider.upgrades.seen) == ["1 secret"])
    let count = provider.upgrades.seen.count
    // The session has a new token by now; a wrong answer is still verified.
    #expect(try await prove(bench, client, "wrong")?.code.name == "wrong")
    #expect(provider.upgrades.seen.count == count, "what is new is not upgraded")
  }

  /// Policies can read the facts of a passed step, whichever version the record had.
  @Test func factsOfAProofSurviveAnUpgrade() async throws {
    let (bench, client, account) = try await bench(Versioned())
    for version in [1, 2] {
      try await keep(version == 1 ? "secret" : "v2:secret", version: version, bench, account)
      let id = try await bench.engine.create("twice", returnTo: nil, browser: nil, client: client).get().id
      _ = try await bench.engine.begin(id, provider: "toy", fields: [:], client: client).get()
      _ = try await bench.engine.submit(id, fields: ["x": .text("secret")], client: client).get()
      let record = try #require(try await bench.store.flow(id.hash))
      #expect(record.facts == ["toy": ["made_in": "1999"]])
      #expect(record.pendingProofs.records["toy"]?.isRenewal == (version == 1 ? true : nil))
    }
  }

  @Test func aNewRecordHasTheProvidersVersion() async throws {
    let (bench, client, account) = try await bench(Versioned(version: 3))
    #expect(try await prove(bench, client, "x", in: "toy_set") == nil)
    #expect(try await kept(bench, account) == ProviderRecord(bytes: Array("v3:new".utf8), version: 3))
  }

  /// Attack: an upgrade in one flow undoes a replacement that another flow stored meanwhile.
  @Test func upgradeDoesNotOverwriteAConcurrentChange() async throws {
    let provider = Versioned()
    let (bench, client, account) = try await bench(provider)
    try await keep("secret", version: 1, bench, account)
    provider.meanwhile.set { try await keep("v2:other", version: 2, bench, account) }
    #expect(try await prove(bench, client, "secret") == nil)
    #expect(try await kept(bench, account) == ProviderRecord(bytes: Array("v2:other".utf8), version: 2))
  }

  @Test func aNewerRecordIsRefusedWithWhatToDo() async throws {
    let (bench, client, account) = try await bench(Versioned())
    try await keep("v3:secret", version: 3, bench, account)
    let before = try await bench.store.providerRecord(of: account, for: "toy")
    let id = try await bench.engine.create("step_up", returnTo: nil, browser: nil, client: client).get().id
    #expect(
      await bench.engine.begin(id, provider: "toy", fields: [:], client: client).refusal?.code == .storeUnavailable)
    #expect(
      bench.log.lines.contains {
        $0.contains("has version 3, and toy of this gateway reads versions up to 2")
          && $0.contains("moongate account reset \(account) --provider toy")
      })
    #expect(try await bench.store.providerRecord(of: account, for: "toy") == before)
  }

  @Test func anUpgradeThatFailsIsAFault() async throws {
    let (bench, client, account) = try await bench(Versioned())
    try await keep("broken", version: 1, bench, account)
    let id = try await bench.engine.create("step_up", returnTo: nil, browser: nil, client: client).get().id
    #expect(await bench.engine.begin(id, provider: "toy", fields: [:], client: client).refusal?.code == .busy)
    #expect(bench.log.lines.contains { $0.contains("a provider could not upgrade a record") })
  }

  /// Attack: a record is passed off as one of another version, or of another account.
  @Test func aVersionIsPartOfTheSeal() throws {
    let keys = try KeyRing(master: [UInt8](repeating: 7, count: 32))
    let sealed = try ProviderRecord(bytes: [1, 2], version: 2).sealed(for: "toy ac_1", by: keys)
    #expect(
      try ProviderRecord(opening: sealed, for: "toy ac_1", by: keys) == ProviderRecord(bytes: [1, 2], version: 2))
    #expect(throws: (any Error).self) { try ProviderRecord(opening: sealed, for: "toy ac_2", by: keys) }
    #expect(throws: (any Error).self) { try keys.open(sealed, for: "toy ac_1") }
    var other = sealed
    other[18] = 3
    #expect(throws: (any Error).self) { try ProviderRecord(opening: other, for: "toy ac_1", by: keys) }
    #expect(throws: (any Error).self) {
      try ProviderRecord(opening: Array(sealed.dropFirst(19)), for: "toy ac_1", by: keys)
    }
    // Version 1 is sealed without a version.
    let old = try keys.seal([3], for: "toy ac_1")
    #expect(try ProviderRecord(opening: old, for: "toy ac_1", by: keys) == ProviderRecord(bytes: [3], version: 1))
    #expect(try ProviderRecord(bytes: [3], version: 1).sealed(for: "toy ac_1", by: keys).count == old.count)
  }

  @Test func recordsOfEveryVersionMoveToAnotherKey() async throws {
    let one = try MasterKeys(only: [UInt8](repeating: 7, count: 32))
    let old = KeyRing(one)
    let ring = KeyRing(try #require(try one.adding([UInt8](repeating: 8, count: 32)).rotated()))
    let store = try SQLiteStore.memory()
    let now = ManualClock.start
    let sealed = try ProviderRecord(bytes: [1], version: 2).sealed(for: "toy ac_1", by: old)
    _ = try await store.apply(
      [
        .createAccount(Account(id: "ac_1", createdAt: now, lastSeenAt: now)),
        .putProviderRecord(account: "ac_1", "toy", sealed: sealed),
      ], at: now)
    #expect(try await KeyUsage(of: store, by: ring).foreign == 0)
    let moved = try await KeyUsage.move(from: old.currentName, in: store, by: ring, dropping: false, at: now)
    #expect(moved.sealed == [ring.currentName: 1])
    let record = try #require(try await store.providerRecord(of: "ac_1", for: "toy"))
    #expect(try ProviderRecord(opening: record, for: "toy ac_1", by: ring) == ProviderRecord(bytes: [1], version: 2))
  }
}
