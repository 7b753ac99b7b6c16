import MoongateCore
import MoongateStore
import MoongateTesting
import Testing

/// The conformance checks on PostgreSQL.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.need)")) struct PostgresConformanceTests {
  @Test(arguments: StoreConformance.all) func inPostgreSQL(_ check: StoreConformance) async throws {
    let store = try #require(PostgresServer.shared).makeStore()
    try await check.run(on: store)
    try store.close()
  }

  /// Each call goes to another gateway.
  @Test(arguments: StoreConformance.all) func overThreeNodes(_ check: StoreConformance) async throws {
    let server = try #require(PostgresServer.shared)
    let url = server.url(try server.makeStoreDatabase(), more: "pool=2")
    let nodes = try (0..<3).map { _ in try PostgresStore(url: url, keyFingerprint: [1], purpose: .working) }
    try await check.run(on: MultiNodeStore(nodes))
    for node in nodes { try node.close() }
  }
}
