import MoongateCore
import MoongatePolicy
import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateGateway

@Suite struct ConfigurationReloadTests {
  private static func reload() throws -> ConfigurationReload {
    let (log, clock) = (CapturedLog(), ManualClock())
    let generation = TestGeneration(gateway: .test(), flows: [], policies: [])
    return ConfigurationReload(
      folder: ConfigurationFolder(path: "/nowhere", providers: try ProviderRegistry([])),
      generations: ActiveGeneration(generation, at: clock.now()), clock: clock, random: SeededRandom(seed: 1),
      audit: AuditTrail(store: try SQLiteStore.memory(), logger: log.logger), logger: log.logger)
  }

  /// A gateway that ends does not wait for a candidate, which is judged with low priority. What comes after the
  /// candidate still waits for it.
  @Test(.timeLimit(.minutes(1))) func aCancelledCallerDoesNotWait() async throws {
    let reload = try Self.reload()
    let (starts, started) = AsyncStream.makeStream(of: Void.self)
    let (gate, opening) = AsyncStream.makeStream(of: Void.self)
    let judging = Task {
      await reload.inTurn {
        started.yield()
        for await _ in gate { break }
        return RefusedConfiguration(id: "first", problems: [], isFolderMissing: false)
      }
    }
    for await _ in starts { break }
    judging.cancel()
    #expect(await judging.value?.problems.map(\.message).first?.hasPrefix("not loaded") ?? false)
    let next = Task { await reload.inTurn { RefusedConfiguration(id: "second", problems: [], isFolderMissing: false) } }
    opening.yield()
    #expect(await next.value?.id == "second")
  }
}
