import MoongateCore
import MoongateSDK

/// The writes of a process that will be killed, and a check that all acknowledged writes survived.
package enum Crash {
  private static let provider = ProviderName(test: "phone_otp")
  private static let attempts = limit("attempts", max: 1_000_000)
  private static let start = ManualClock.start

  private static func limit(_ name: String, max: Int, lock: [Duration] = []) -> ResolvedLimit {
    ResolvedLimit(
      provider: provider, name: "limit", key: .identifier, counter: Array(TokenHash(of: name.utf8).bytes.prefix(20)),
      max: max,
      window: .seconds(86_400), counts: .failures, lock: lock, disables: false)
  }

  private static func reservation(_ number: Int, _ kind: UInt8) -> ReservationID {
    ReservationID(bytes: (0..<8).map { UInt8(number >> ($0 * 8) & 0xff) } + [UInt8](repeating: kind, count: 8))
  }

  private static func flow(_ number: Int) -> FlowRecord {
    FlowRecord(
      id: TokenHash(of: "fl_\(number)".utf8), definition: .test("login", account: .any, steps: [.test(provider)]),
      codes: [:], createdAt: start,
      returnTo: nil, browser: nil, network: [], account: nil)
  }

  /// Performs one round of writes. All of them are acknowledged when it returns.
  package static func act(_ number: Int, on store: any Store) async throws {
    let now = start + .milliseconds(number)
    var flow = flow(number)
    _ = try await store.apply([.putFlow(flow)], at: now)
    flow.version = 1
    flow.status = .complete
    let locked = limit("locked \(number)", max: 1, lock: [.seconds(900)])
    for (kind, limit) in [(UInt8(1), attempts), (2, limit("open \(number)", max: 5)), (3, locked)] {
      _ = try await store.reserve(
        ReservationRequest(id: reservation(number, kind), now: now, limits: [limit], timer: nil))
    }
    let account = Account(id: "ac_\(number)", createdAt: now, lastSeenAt: now)
    let session = Session(
      id: "se_\(number)", token: TokenHash(of: "se_\(number)".utf8), account: account.id, createdAt: now,
      expiresAt: now + .seconds(86_400),
      idle: .seconds(86_400), lastSeenAt: now, passed: [], userAgent: nil)
    _ = try await store.apply(
      [
        .settle(
          Settlement(reservation: reservation(number, 1), outcome: .failure, limits: [attempts], timer: nil, now: now)),
        .settle(
          Settlement(reservation: reservation(number, 3), outcome: .failure, limits: [locked], timer: nil, now: now)),
        .createAccount(account), .putSession(session), .putFlow(flow),
      ], at: now)
  }

  /// Describes the missing writes of acknowledged rounds; empty if none is missing.
  /// - Parameter kills: how many rounds were interrupted. Those may have been written in part.
  package static func missing(_ rounds: [Int], kills: Int, in store: any Store) async throws -> [String] {
    var missing: [String] = []
    let last = start + .milliseconds(rounds.max() ?? 0)
    let counted = try await store.counters([attempts], at: last)[0].settled
    if counted < rounds.count { missing.append("\(rounds.count - counted) charged attempts") }
    if counted > rounds.count + kills { missing.append("\(counted - rounds.count) attempts too many") }
    for number in rounds {
      let states = try await store.counters(
        [limit("open \(number)", max: 5), limit("locked \(number)", max: 1)], at: last)
      if states[0].used != 1 { missing.append("open try \(number)") }
      if states[1].lockedUntil != start + .milliseconds(number) + .seconds(900) { missing.append("lock \(number)") }
      if try await store.session(TokenHash(of: "se_\(number)".utf8)) == nil { missing.append("session \(number)") }
      if try await store.flow(TokenHash(of: "fl_\(number)".utf8))?.status != .complete {
        missing.append("flow \(number)")
      }
    }
    // The latest time is recorded within a second.
    if try await store.latestMoment() + .seconds(1) <= last { missing.append("latest moment") }
    return missing
  }
}
