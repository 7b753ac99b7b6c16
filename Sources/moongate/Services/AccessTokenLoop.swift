import Logging
import MoongateCore
import ServiceLifecycle

/// Records the end of access tokens that have expired or whose owner's account has changed. Every gateway of a store
/// runs it; each end is recorded once. A token is invalid from its end on, whether or not the end is recorded yet.
struct AccessTokenLoop: Service {
  let sweep: AccessTokenSweep
  let logger: Logger

  func run() async throws { await Background.batches(every: .seconds(10)) { await step() } }

  private func step() async -> Bool {
    do {
      return try await sweep.step()
    } catch {
      logger.warning("the end of access tokens cannot be recorded; retrying later", metadata: ["fault": "\(error)"])
      return false
    }
  }
}
