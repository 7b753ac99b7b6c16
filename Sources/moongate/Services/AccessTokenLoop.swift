import Logging
import MoongateCore
import ServiceLifecycle

/// Notes the end of tokens that have expired, or whose owner's account has changed. Every gateway of a store does it:
/// whichever comes first tells of each. A token is dead from its end on, whether it was noted or not.
struct AccessTokenLoop: Service {
  let sweep: AccessTokenSweep
  let logger: Logger

  private static let interval: Duration = .seconds(10)
  private static let pause: Duration = .milliseconds(100)

  func run() async throws {
    try? await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        let hasMore = await self.step()
        try await Task.sleep(for: hasMore ? Self.pause : Self.interval)
      }
    }
  }

  private func step() async -> Bool {
    do {
      return try await sweep.step()
    } catch {
      logger.warning("the end of tokens cannot be noted; trying again later", metadata: ["fault": "\(error)"])
      return false
    }
  }
}
