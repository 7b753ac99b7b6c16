import Logging
import MoongateCore
import ServiceLifecycle

/// Keeps the number of flows without a verified step within its limit, across all gateways of the store.
struct FlowEviction: Service {
  let store: any Store
  let generations: ActiveGeneration
  let clock: any GatewayClock
  let logger: Logger

  /// The maximum time that a flood can exceed the limit.
  private static let interval: Duration = .seconds(2)

  func run() async throws {
    try? await cancelWhenGracefulShutdown {
      var wasFailing = false
      while !Task.isCancelled {
        do {
          let removed = try await store.evictFlows(
            beyond: generations.current.gateway.connectionLimits.flows, at: clock.now())
          if removed > 0 {
            logger.warning("flows without a verified step were evicted", metadata: ["count": "\(removed)"])
          }
          wasFailing = false
        } catch {
          if !wasFailing { logger.warning("flows cannot be counted; retrying", metadata: ["fault": "\(error)"]) }
          wasFailing = true
        }
        try await Task.sleep(for: Self.interval)
      }
    }
  }
}
