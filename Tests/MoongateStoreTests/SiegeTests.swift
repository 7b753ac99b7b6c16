import Foundation
import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

/// 100,000 identifiers attacked at once: memory stays bounded, no lock is forgotten, no one else is locked out.
@Suite struct SiegeTests {
  private let now = ManualClock.start

  private func limit(_ number: Int) -> ResolvedLimit {
    ResolvedLimit(
      provider: ProviderName(test: "phone_otp"), name: "verify", key: .identifier, counter: Array(TokenHash(of: "\(number)".utf8).bytes.prefix(20)),
      max: Self.isLocked(number) ? 1 : 2, window: .seconds(86_400), counts: .failures, lock: [.seconds(900)], disables: false)
  }

  /// One failure locks every tenth, and is counted to the others.
  private static func isLocked(_ number: Int) -> Bool { number % 10 == 0 }

  /// Of this process, in bytes.
  private func resident() throws -> Int {
    let pages = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
    return try #require(Int(pages[1])) * Int(sysconf(Int32(_SC_PAGESIZE)))
  }

  @Test func aHundredThousandAtOnce() async throws {
    let folder = try ScratchFolder()
    let store = try SQLiteStore(path: folder.path("moongate.db"), keyFingerprint: [1])
    let random = SeededRandom()
    let before = try resident()
    for start in stride(from: 0, to: 100_000, by: 500) {
      let limits = (start..<start + 500).map(limit)
      let id = ReservationID(from: random)
      _ = try await store.reserve(ReservationRequest(id: id, now: now, limits: limits, timer: nil))
      let settlement = Settlement(reservation: id, outcome: .failure, limits: limits, timer: nil, now: now)
      guard case .applied(let locks) = try await store.apply([.settle(settlement)], at: now) else { continue }
      #expect(locks.count == 50)
    }
    let grown = try resident() - before
    #expect(grown < 100 * 1024 * 1024, "\(grown / 1024 / 1024) MiB more, of which the store's cache may have 8")
    for number in stride(from: 0, to: 100_000, by: 997) {
      let request = ReservationRequest(id: ReservationID(from: random), now: now, limits: [limit(number)], timer: nil)
      let locked = ReservationRefusal(reason: .locked(until: now + .seconds(900)), limit: limit(number))
      #expect(try await store.reserve(request) == (Self.isLocked(number) ? .refused(locked) : .reserved(places: [2], resendAt: nil)))
    }
    #expect(try await store.locks(at: now).count == 10_000)
    let bystander = ReservationRequest(id: ReservationID(from: random), now: now, limits: [limit(100_001)], timer: nil)
    #expect(try await store.reserve(bystander) == .reserved(places: [1], resendAt: nil))
  }
}
