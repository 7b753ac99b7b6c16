import Logging
import MoongateCore
import MoongatePolicy
import ServiceLifecycle

/// Reads the databases of `geo` again when their files change. Programs such as geoipupdate replace them without
/// notifying the gateway.
struct GeoReload: Service {
  private static let interval: Duration = .seconds(1)

  let generations: ActiveGeneration
  let logger: Logger

  func run() async throws {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        if let databases = generations.current.gateway.places as? GeoDatabases { look(at: databases) }
        do { try await Task.sleep(for: Self.interval) } catch { return }
      }
    }
  }

  /// Reads the files that have changed and are complete. One that cannot be used is logged once, and the gateway
  /// continues with the database that it has.
  func look(at databases: GeoDatabases) {
    for database in databases.all where database.look() == .isComplete {
      do throws(GeoDatabase.Problem) {
        try database.reload()
        logger.notice(
          "geo database reloaded", metadata: ["file": "\(database.path)", "made": "\(database.builtAt.text)"])
      } catch {
        logger.error(
          "a geo database cannot be read: the gateway keeps the one that it has",
          metadata: ["file": "\(database.path)", "why": "\(error.message)", "made": "\(database.builtAt.text)"])
      }
    }
  }
}
