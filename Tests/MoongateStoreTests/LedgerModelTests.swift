import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

/// Compares the store with the model over random sequences; a failure names its seed.
@Suite struct LedgerModelTests {
  private static let limits: [ResolvedLimit] = [
    limit("verify", max: 3, window: .seconds(60), lock: [.seconds(20), .seconds(50)]),
    limit("send", key: .phone, max: 2, window: .seconds(30), counts: .all),
    limit("ip", key: .ip, max: 6, window: .seconds(25), counts: .all),
    limit("hard", max: 5, window: nil, counts: .consecutiveFailures, disables: true),
    limit("row", max: 2, window: nil, counts: .consecutiveFailures, lock: [.seconds(15), .seconds(45)]),
    limit("blink", max: 2, window: .seconds(5)),
  ]

  private static func limit(
    _ name: String, key: LimitKey = .identifier, max: Int, window: Duration?, counts: LimitCounts = .failures,
    lock: [Duration] = [],
    disables: Bool = false
  ) -> ResolvedLimit {
    ResolvedLimit(
      provider: ProviderName(test: "phone_otp"), name: name, key: key, counter: Array(name.utf8), max: max,
      window: window, counts: counts,
      lock: lock,
      disables: disables)
  }

  @Test(arguments: 1...40) func agrees(seed: UInt64) async throws {
    try await agree(try SQLiteStore.memory(), seed: seed)
  }

  @Test(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.need)"), arguments: 101...108)
  func agreesOnPostgreSQL(seed: UInt64) async throws {
    let store = try #require(PostgresServer.shared).makeStore()
    try await agree(store, seed: seed)
    try store.close()
  }

  private func agree(_ store: any Store, seed: UInt64) async throws {
    let random = SeededRandom(seed: seed)
    var model = LedgerModel()
    var now = ManualClock.start
    var open: [(id: ReservationID, limits: [ResolvedLimit])] = []
    for step in 0..<400 {
      switch random.uniform(below: 10) {
      case 0..<4:
        let some = Self.limits.filter { _ in random.uniform(below: 3) == 0 }
        let id = ReservationID(from: random)
        let answer = try await store.reserve(ReservationRequest(id: id, now: now, limits: some, timer: nil))
        try #require(Self.plain(answer) == model.reserve(id, some, at: now.milliseconds), "reserve, step \(step)")
        if answer.isReserved { open.append((id, some)) }
      case 4..<8:
        guard let chosen = random.pick(open),
          let outcome = random.pick([Settlement.Outcome.success, .failure, .failure, .failure, .refund, .refundPerson])
        else { continue }
        if random.uniform(below: 5) > 0 { open.removeAll { $0.id == chosen.id } }
        let settlement = Settlement(
          reservation: chosen.id, outcome: outcome, limits: chosen.limits, timer: nil, now: now)
        _ = try await store.apply([.settle(settlement)], at: now)
        model.settle(chosen.id, outcome, chosen.limits, at: now.milliseconds)
      case 8:
        if random.uniform(below: 4) > 0 {
          now = now + .milliseconds(Int(random.uniform(below: random.uniform(below: 2) == 0 ? 3000 : 40_000)))
        } else {
          _ = try await store.prune(at: now)
        }
      default:
        guard random.uniform(below: 4) == 0, let limit = random.pick(Self.limits) else { continue }
        try #require(
          try await store.liftLock(Base64URL.encode(limit.counter), at: now) == model.lift(limit, at: now.milliseconds),
          "lift, step \(step)")
      }
      let states = try await store.counters(Self.limits, at: now)
      for (limit, state) in zip(Self.limits, states) {
        let expected = model.look(limit, at: now.milliseconds)
        let found = (
          pending: state.pending, settled: state.settled,
          until: state.isLocked(at: now) ? state.lockedUntil?.milliseconds : nil,
          isDisabled: state.isDisabled
        )
        try #require(found == expected, "\(limit.name), step \(step)")
      }
    }
  }

  private static func plain(_ result: ReservationResult) -> LedgerModel.Answer {
    switch result {
    case .reserved(let places, _, _): .reserved(places)
    case .filledByPending: .wait
    case .barred, .flowChanged: .barred
    case .refused(let refusal):
      switch refusal.reason {
      case .disabled: .disabled
      case .locked(let until), .full(let until), .timer(let until): .until(until.milliseconds)
      }
    }
  }
}

extension ReservationResult {
  fileprivate var isReserved: Bool { if case .reserved = self { true } else { false } }
}
