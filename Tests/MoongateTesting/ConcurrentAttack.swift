import MoongateCore
import MoongateSDK

/// An attack on 100,000 identifiers at once. Run it in a separate process, so that its memory can be measured.
package enum ConcurrentAttack {
  /// The number of attacked identifiers.
  package static let size = 100_000
  /// The time of the attack.
  package static let now = ManualClock.start

  /// The limit that counts attempts at the identifier with this number.
  package static func limit(_ number: Int) -> ResolvedLimit {
    ResolvedLimit(
      provider: ProviderName(test: "phone_otp"), name: "verify", key: .identifier,
      counter: Array(TokenHash(of: "\(number)".utf8).bytes.prefix(20)),
      max: isLocked(number) ? 1 : 2, window: .seconds(86_400), counts: .failures, lock: [.seconds(900)], disables: false
    )
  }

  /// Whether one failure locks the identifier: every tenth one. For the others it is only counted.
  package static func isLocked(_ number: Int) -> Bool { number % 10 == 0 }

  /// Makes one wrong attempt at each identifier, in batches of several hundred per transaction, several at once.
  package static func run(on store: any Store) async throws {
    let random = SeededRandom()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for start in stride(from: 0, to: size, by: 500) {
        if start >= 4 * 500 { try await group.next() }
        group.addTask {
          let limits = (start..<start + 500).map(limit)
          let id = ReservationID(from: random)
          _ = try await store.reserve(ReservationRequest(id: id, now: now, limits: limits, timer: nil))
          let settlement = Settlement(reservation: id, outcome: .failure, limits: limits, timer: nil, now: now)
          _ = try await store.apply([.settle(settlement)], at: now)
        }
      }
      try await group.waitForAll()
    }
  }
}
