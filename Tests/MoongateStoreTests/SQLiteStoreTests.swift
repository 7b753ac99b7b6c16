import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@Suite struct SQLiteStoreTests {
  @Test func fiveOfTwoHundred() async throws {
    let store = try SQLiteStore.memory()
    let random = SeededRandom()
    let limit = ResolvedLimit(
      provider: ProviderName(test: "phone_otp"), name: "verify", key: .identifier, counter: [1, 2, 3], max: 5, window: .seconds(60),
      counts: .failures,
      lock: [.seconds(900)], disables: false)
    let reserved = try await withThrowingTaskGroup(of: Bool.self) { group in
      for _ in 0..<200 {
        group.addTask {
          let result = try await store.reserve(
            ReservationRequest(id: ReservationID(from: random), now: ManualClock.start, limits: [limit], timer: nil))
          if case .reserved = result { return true }
          #expect(result == .filledByPending)
          return false
        }
      }
      var count = 0
      for try await isReserved in group where isReserved { count += 1 }
      return count
    }
    #expect(reserved == 5)
  }
}
