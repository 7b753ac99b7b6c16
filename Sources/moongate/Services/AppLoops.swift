import Logging
import MoongateCore
import ServiceLifecycle

/// Sends logout tokens to apps whose users have signed out (OpenID Connect Back-Channel Logout 1.0).
struct AppNoticesLoop: Service {
  let notices: AppNotices
  let logger: Logger

  /// The pause while nothing is due.
  private static let interval: Duration = .seconds(1)

  func run() async {
    await Background.batches(every: Self.interval) {
      do throws(StoreFault) { return try await notices.step() } catch {
        logger.warning("logout tokens of apps cannot be read", metadata: ["fault": "\(error)"])
        return false
      }
    }
  }
}

/// Makes the RSA key of the next period a day before it signs, while an app needs one.
struct AppKeysLoop: Service {
  let apps: Apps
  let generations: ActiveGeneration
  let clock: any GatewayClock
  let logger: Logger

  private static let interval: Duration = .seconds(3600)

  func run() async {
    await Background.batches(every: Self.interval) {
      guard generations.current.apps.apps.contains(where: { $0.signing == .rs256 }) else { return false }
      do { try await apps.signing.prepare(at: clock.now()) } catch {
        logger.warning("the next signing key of apps cannot be made", metadata: ["fault": "\(error)"])
      }
      return false
    }
  }
}
