import MoongateCore
import MoongateSDK
import Testing

/// The requirements for every store: one list of checks that runs unchanged on each kind of store.
///
/// ```swift
/// @Test(arguments: StoreConformance.all) func conforms(_ check: StoreConformance) async throws {
///   try await check.run(on: try SQLiteStore.memory())
/// }
/// ```
/// Each check gets an empty store, and records failures with `#expect`.
package struct StoreConformance: Sendable, CustomTestStringConvertible {
  /// The requirement that it checks.
  package let name: String
  private let body: @Sendable (StoreBench) async throws -> Void

  init(_ name: String, _ body: @escaping @Sendable (StoreBench) async throws -> Void) {
    self.name = name
    self.body = body
  }

  /// All checks.
  package static let all: [StoreConformance] =
    ledger + locks + attempts + timers + flows + accounts + names + changing + operated + sessions + siteSessions
    + trail + audit
    + bounds + nodes + values + leases + rechecks + groups + invitations + imports
    + domains + tokens + apps

  /// - Parameter store: an empty store.
  package func run(on store: any Store) async throws { try await body(StoreBench(store: store)) }

  package var testDescription: String { name }
}

/// A store under test, with a clock and randomness that the check controls, and short names for common operations.
struct StoreBench: Sendable {
  let store: any Store
  let clock = ManualClock()
  let random = SeededRandom()

  var now: Timestamp { clock.now() }

  /// More than five parameters: the members that tests vary.
  /// A limit whose counter is derived from its name and subject.
  func limit(
    _ name: String = "verify", of subject: String = "asha", per key: LimitKey = .identifier, max: Int = 3,
    window: Duration? = .seconds(60),
    counts: LimitCounts = .failures, lock: [Duration] = [], disables: Bool = false
  ) -> ResolvedLimit {
    ResolvedLimit(
      provider: ProviderName(test: "phone_otp"), name: name, key: key,
      counter: Array(TokenHash(of: "\(name) \(subject)".utf8).bytes.prefix(20)),
      max: max, window: window, counts: counts, lock: lock, disables: disables)
  }

  func timer(_ intervals: [Duration] = [.seconds(60), .seconds(120)], expiredAt: Timestamp? = nil) -> ResendTimer {
    ResendTimer(key: [9, 9], intervals: intervals, expiredAt: expiredAt)
  }

  /// When the timer allows the next send.
  func resendAt(_ timer: ResendTimer) async throws -> Timestamp? {
    try await store.ledgerState(LedgerQuery([], timer), at: now).resendAt
  }

  func reserve(_ limits: [ResolvedLimit], timer: ResendTimer? = nil) async throws -> (
    id: ReservationID, result: ReservationResult
  ) {
    let id = ReservationID(from: random)
    return (id, try await store.reserve(ReservationRequest(id: id, now: now, limits: limits, timer: timer)))
  }

  /// Reserves and settles at once.
  @discardableResult
  func attempt(_ limits: [ResolvedLimit], _ outcome: Settlement.Outcome, timer: ResendTimer? = nil) async throws
    -> ReservationResult
  {
    let (id, result) = try await reserve(limits, timer: timer)
    if case .reserved = result { try await settle(id, limits, outcome, timer: timer) }
    return result
  }

  @discardableResult
  func settle(_ id: ReservationID, _ limits: [ResolvedLimit], _ outcome: Settlement.Outcome, timer: ResendTimer? = nil)
    async throws -> ApplyResult
  {
    try await apply(.settle(Settlement(reservation: id, outcome: outcome, limits: limits, timer: timer, now: now)))
  }

  @discardableResult
  func apply(_ changes: Change...) async throws -> ApplyResult { try await store.apply(changes, at: now) }

  func state(_ limit: ResolvedLimit) async throws -> CounterState {
    try #require(try await store.counters([limit], at: now).first)
  }

  func account(_ id: String, verified: [Identifier] = [], claimed: [Identifier] = []) -> Account {
    Account(
      id: id, firstName: "Asha", lastName: "Rao", createdAt: now, lastSeenAt: now,
      identifiers: verified.map { HeldIdentifier(identifier: $0, verifiedAt: now) }
        + claimed.map { HeldIdentifier(identifier: $0, verifiedAt: nil) })
  }

  func phone(_ number: String = "+919999999999") -> Identifier {
    Identifier(
      kind: .phone, value: number, display: "+91 99999 99999", attributes: ["country": "IN", "type": "mobile"])
  }

  func email(_ address: String = "asha@example.com") -> Identifier {
    Identifier(kind: .email, value: address, display: address, attributes: ["domain": "example.com"])
  }

  func name(_ name: String) -> Identifier { Identifier(kind: .name, value: name, display: name) }

  func session(_ id: String, of account: String, token: String? = nil) -> Session {
    var session = Session(
      id: id, token: TokenHash(of: (token ?? id).utf8), account: account, createdAt: now,
      expiresAt: now + .seconds(43_200), idle: .seconds(3600),
      lastSeenAt: now, passed: [PassedStep(provider: ProviderName(test: "phone_otp"), at: now)], userAgent: "Firefox")
    (session.address, session.lastAddress) = ("192.0.2.1", "192.0.2.1")
    session.isRemembered = true
    return session
  }

  func flow(_ id: String) -> FlowRecord {
    let definition = FlowDefinition.test("login", account: .existing, steps: [.test(ProviderName(test: "phone_otp"))])
    var record = FlowRecord(
      id: TokenHash(of: id.utf8), definition: definition, codes: [:], createdAt: now, returnTo: "/here", browser: nil,
      network: [192, 0, 2, 0],
      account: nil)
    record.steps.append(
      StepRule(choices: [ProviderName(test: "pin")], isSkippable: false, when: nil, requirement: .enroll))
    return record
  }
}

extension ReservationResult {
  /// The places, if the reservation was granted.
  var places: [Int]? { if case .reserved(let places, _, _) = self { places } else { nil } }

  /// The reason, if the reservation was refused.
  var reason: ReservationRefusal.Reason? { if case .refused(let refusal) = self { refusal.reason } else { nil } }
}
