import MoongateCore
import ServiceLifecycle

/// Looks now and then whether the maintenance of a provider is due.
struct MaintenanceLoop: Service {
  let maintenance: Maintenance

  private static let interval: Duration = .seconds(2)

  func run() async throws {
    await cancelWhenGracefulShutdown {
      await withDiscardingTaskGroup { group in
        while !Task.isCancelled {
          // One that takes its time holds up no other: what runs already is not begun again.
          group.addTask { await maintenance.step() }
          do { try await Task.sleep(for: Self.interval) } catch { break }
        }
        group.cancelAll()
      }
    }
  }
}
