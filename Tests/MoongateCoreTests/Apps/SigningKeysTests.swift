import MoongateSDK
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateCore

/// A store whose values cannot be read while it is down.
private final class UnreachableValues: ForwardingStore {
  let isDown = Mutex(false)
  private let inner: any Store

  init(_ inner: any Store) { self.inner = inner }

  func store(for call: String) -> any Store { inner }

  func reserve(_ request: ReservationRequest) async throws(StoreFault) -> ReservationResult {
    try await inner.reserve(request)
  }

  func providerValue(at place: ProviderValuePlace, at now: Timestamp) async throws(StoreFault) -> [UInt8]? {
    if isDown.withLock({ $0 }) { throw StoreFault("no answer") }
    return try await inner.providerValue(at: place, at: now)
  }
}

/// The keys that sign tokens of apps.
@Suite struct SigningKeysTests {
  private typealias Bench = AppsTestBench

  private static let change = Timestamp(
    milliseconds: (ManualClock.start.seconds / SigningPeriod.length + 1) * SigningPeriod.length * 1000)

  @Test(arguments: SigningAlgorithm.allCases) func tokensAreVerifiedForTwoPeriods(_ algorithm: SigningAlgorithm)
    async throws
  {
    let app = try Bench.app(signing: algorithm)
    let bench = try await Bench(app)
    let token = try #require(try await bench.tokens(app, in: try await bench.session()).idToken).reveal()
    let hint = try #require(await bench.apps.hint(token, bench.call))
    #expect(hint.app.id == "grafana" && hint.subject == Bench.account && hint.sid != nil)
    bench.clock.set(Self.change)
    #expect(await bench.apps.hint(token, bench.call) != nil, "expired, and of the last period")
    bench.clock.set(Self.change + .seconds(SigningPeriod.length))
    #expect(await bench.apps.hint(token, bench.call) == nil)
  }

  /// All gateways have the same RSA key, also if they make it at the same moment, and after a restart.
  @Test func gatewaysShareOneRSAKey() async throws {
    let bench = try await Bench()
    let now = bench.clock.now()
    let nodes = (0..<3).map { _ in SigningKeys(bench.keys, store: bench.store, at: now) }
    let ids = try await withThrowingTaskGroup(of: String.self) { group in
      for node in nodes + nodes { group.addTask { try await node.signer(.rs256, at: now).id } }
      return try await group.reduce(into: Set<String>()) { $0.insert($1) }
    }
    #expect(ids.count == 1)
    let later = SigningKeys(bench.keys, store: bench.store, at: now)
    #expect(ids.contains(try await later.signer(.rs256, at: now).id))
  }

  @Test(arguments: SigningAlgorithm.allCases) func keysArePublishedADayAroundTheirPeriod(
    _ algorithm: SigningAlgorithm
  ) async throws {
    let bench = try await Bench()
    let keys = bench.apps.signing
    let at = { (seconds: Int) in Self.change + .seconds(seconds) }
    let old = try await keys.signer(algorithm, at: at(-86_401)).publicKey
    #expect(try await keys.publicKeys([algorithm], at: at(-86_401)) == [old])
    try await keys.prepare(at: at(-86_400))
    let new = try await keys.publicKeys([algorithm], at: at(-86_400)).last
    #expect(new != old)
    #expect(try await keys.signer(algorithm, at: at(0)).publicKey == new)
    #expect(try await keys.publicKeys([algorithm], at: at(86_399)) == [new, old])
    #expect(try await keys.publicKeys([algorithm], at: at(86_400)) == [new])
  }

  /// A failover of the database loses the key, and another gateway makes another one.
  @Test func theStoredKeyReplacesTheKnownOne() async throws {
    let bench = try await Bench()
    let now = bench.clock.now()
    let node = SigningKeys(bench.keys, store: bench.store, at: now)
    let lost = try await node.signer(.rs256, at: now).id
    let stored = try #require(try await bench.store.providerValues(after: nil, limit: 1).first)
    _ = try await bench.store.takeProviderValue(at: stored.place, under: nil, at: now)
    let other = try await SigningKeys(bench.keys, store: bench.store, at: now).signer(.rs256, at: now).id
    #expect(other != lost)
    try await node.prepare(at: now)
    #expect(try await node.signer(.rs256, at: now).id == other)
  }

  /// Attack: the database cannot be reached for a moment within a day of a change of keys, and services refuse all
  /// tokens because the key set is not there.
  @Test func knownKeysArePublishedWithoutTheStore() async throws {
    let bench = try await Bench()
    let store = UnreachableValues(bench.store)
    let keys = SigningKeys(bench.keys, store: store, at: bench.clock.now())
    let at = Self.change + .seconds(-60)
    let known = try await keys.signer(.rs256, at: at).publicKey
    store.isDown.withLock { $0 = true }
    #expect(try await keys.publicKeys([.rs256], at: at) == [known])
  }

  /// Attack: a token without signature, one by a shared secret, by another key, or by a key of another kind.
  @Test func otherSignaturesAreRefused() async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let token = try #require(try await bench.tokens(app, in: try await bench.session()).idToken).reveal()
    let parts = token.split(separator: ".").map(String.init)
    let kid = try await bench.apps.signing.signer(.es256, at: bench.clock.now()).id
    let header = { (text: String) in Base64URL.encode(text.utf8) }
    let claims = try #require(Base64URL.decode(parts[1]))
    let strangers = SigningKeys(
      try KeyRing(master: [UInt8](repeating: 8, count: 32)), store: bench.store, at: bench.clock.now())
    // Attack: an assertion that a service received, shown as an ID token.
    let assertion = try RotatingKeys(bench.keys, for: .assertions, at: bench.clock.now()).signer(at: bench.clock.now())
      .sign(claims)
    for forged in [
      "\(header(#"{"alg":"none","kid":"\#(kid)","typ":"JWT"}"#)).\(parts[1]).",
      "\(header(#"{"alg":"HS256","kid":"\#(kid)","typ":"JWT"}"#)).\(parts[1]).\(parts[2])",
      "\(header(#"{"alg":"EdDSA","kid":"\#(kid)","typ":"JWT"}"#)).\(parts[1]).\(parts[2])",
      "\(header(#"{"alg":"RS256","kid":"\#(kid)","typ":"JWT"}"#)).\(parts[1]).\(parts[2])",
      "\(header(#"{"alg":"ES256","kid":"\#(kid)","typ":"JWT","crit":["x"]}"#)).\(parts[1]).\(parts[2])",
      "\(parts[0]).\(Base64URL.encode(claims + [0x20])).\(parts[2])",
      try await strangers.signer(.es256, at: bench.clock.now()).sign(claims), assertion, "", "a.b.c", token + ".x",
    ] {
      #expect(await bench.apps.hint(forged, bench.call) == nil, "\(forged)")
    }
    #expect(await bench.apps.hint(token, bench.call) != nil)
    // A token of an app that was removed.
    bench.reload()
    #expect(await bench.apps.hint(token, bench.call) == nil)
  }

  /// Attack: someone who can write to the database replaces the RSA key by one of their own.
  @Test func aKeyOfAnotherInstallationIsNotUsed() async throws {
    let bench = try await Bench()
    let now = bench.clock.now()
    _ = try await bench.apps.signing.signer(.rs256, at: now)
    let stored = try #require(try await bench.store.providerValues(after: nil, limit: 1).first)
    try await bench.store.replaceProviderValue(
      stored, by: ProviderValue(place: stored.place, sealed: stored.sealed.reversed(), expiresAt: stored.expiresAt),
      at: now)
    await #expect(throws: (any Error).self) {
      try await SigningKeys(bench.keys, store: bench.store, at: now).signer(.rs256, at: now)
    }
  }
}
