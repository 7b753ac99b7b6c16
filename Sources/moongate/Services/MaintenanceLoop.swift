import MoongateCore
import ServiceLifecycle

/// Runs the maintenance of providers and the rechecks of identities when they are due.
struct MaintenanceLoop: Service {
  let maintenance: Maintenance
  let rechecks: IdentityRechecks

  private static let interval: Duration = .seconds(1)

  func run() async throws {
    await cancelWhenGracefulShutdown {
      await withDiscardingTaskGroup { group in
        while !Task.isCancelled {
          // A slow task delays no other one. Maintenance that is still running does not start again.
          group.addTask { await maintenance.step() }
          group.addTask { await rechecks.step() }
          do { try await Task.sleep(for: Self.interval) } catch { break }
        }
        group.cancelAll()
      }
    }
  }
}
