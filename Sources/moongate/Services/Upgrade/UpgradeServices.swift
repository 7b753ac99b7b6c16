import Logging
import MoongateCore
import ServiceLifecycle
import UnixSignals

/// Shuts down the gateway after another process has replaced it.
struct Replacement: Service {
  let upgrading: Upgrading

  func run() async throws { await cancelWhenGracefulShutdown { await upgrading.awaitReplacement() } }
}

/// Starts an upgrade on SIGUSR2.
struct SignalUpgrade: Service {
  /// The time limit for the new process to become ready.
  static let timeLimit: Duration = .seconds(60)

  let upgrading: Upgrading
  let audit: AuditTrail
  let clock: any GatewayClock
  let random: any RandomSource

  func run() async throws {
    await cancelWhenGracefulShutdown {
      for await _ in await UnixSignalsSequence(trapping: .sigusr2) {
        audit.record(
          AuditEvent(id: DecisionID(from: random), at: clock.now(), kind: .upgradeRequested, detail: ["by": "SIGUSR2"]))
        _ = await upgrading.upgrade(within: Self.timeLimit)
      }
    }
  }
}
