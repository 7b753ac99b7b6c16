import MoongateCore
import MoongateStore
import MoongateTesting
import Testing

/// The conformance checks on SQLite, in memory and in a file.
@Suite struct SQLiteConformanceTests {
  @Test(arguments: StoreConformance.all) func inMemory(_ check: StoreConformance) async throws {
    try await check.run(on: try SQLiteStore.memory())
  }

  @Test(arguments: StoreConformance.all) func inAFile(_ check: StoreConformance) async throws {
    let folder = try ScratchFolder()
    try await check.run(on: try SQLiteStore(path: folder.path("moongate.db"), keyFingerprint: [1, 2, 3]))
  }
}
