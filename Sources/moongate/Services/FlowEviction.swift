import Logging
import MoongateCore
import ServiceLifecycle

/// Holds the store to the bound on flows in which nobody has proved anything, whichever gateway stored them.
struct FlowEviction: Service {
  let store: any Store
  let generations: ActiveGeneration
  let clock: any GatewayClock
  let logger: Logger

  /// A flood may go beyond the bound for so long.
  private static let interval: Duration = .seconds(2)

  func run() async throws {
    try? await cancelWhenGracefulShutdown {
      var wasFailing = false
      while !Task.isCancelled {
        do {
          let removed = try await store.evictFlows(
            beyond: generations.current.gateway.connectionLimits.flows, at: clock.now())
          if removed > 0 {
            logger.warning("flows in which nobody had proved anything were evicted", metadata: ["count": "\(removed)"])
          }
          wasFailing = false
        } catch {
          if !wasFailing { logger.warning("flows cannot be counted; trying again", metadata: ["fault": "\(error)"]) }
          wasFailing = true
        }
        try await Task.sleep(for: Self.interval)
      }
    }
  }
}
