import Logging
import MoongateCore
import ServiceLifecycle

/// Removes expired rows from the store in small batches, so that no request waits for it.
struct PruneLoop: Service {
  let store: any Store
  let clock: any GatewayClock
  let logger: Logger

  func run() async throws { await Background.batches(every: .seconds(60)) { await step() } }

  private func step() async -> Bool {
    do {
      return try await store.prune(at: clock.now())
    } catch {
      logger.warning("expired rows cannot be removed; retrying in a minute", metadata: ["fault": "\(error)"])
      return false
    }
  }
}
