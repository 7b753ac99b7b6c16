import Logging
import MoongateCore
import ServiceLifecycle

/// Removes expired rows from the store in small batches, so that no request waits for it.
struct PruneLoop: Service {
  let store: any Store
  let clock: any GatewayClock
  let logger: Logger

  private static let interval: Duration = .seconds(60)
  private static let pause: Duration = .milliseconds(100)

  func run() async throws {
    try? await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        var pause = Self.interval
        do {
          if try await store.prune(at: clock.now()) { pause = Self.pause }
        } catch {
          logger.warning("expired rows cannot be removed; retrying in a minute", metadata: ["fault": "\(error)"])
        }
        try await Task.sleep(for: pause)
      }
    }
  }
}
