import MoongateCore
import MoongateStore
import MoongateTesting
import Testing

/// The store does in PostgreSQL what every store must.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.need)")) struct PostgresConformanceTests {
  @Test(arguments: StoreConformance.all) func inPostgreSQL(_ check: StoreConformance) async throws {
    let store = try #require(PostgresServer.shared).makeStore()
    try await check.run(on: store)
    try store.close()
  }
}
