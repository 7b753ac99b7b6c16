import Logging
import MoongateCore
import ServiceLifecycle
import UnixSignals

/// Ends the gateway once another process serves in its place.
struct Replacement: Service {
  let upgrading: Upgrading

  func run() async throws { await cancelWhenGracefulShutdown { await upgrading.awaitReplacement() } }
}

/// Upgrades at SIGUSR2.
struct SignalUpgrade: Service {
  /// How long the program may take to get ready.
  static let patience: Duration = .seconds(60)

  let upgrading: Upgrading
  let audit: AuditTrail
  let clock: any GatewayClock
  let random: any RandomSource

  func run() async throws {
    await cancelWhenGracefulShutdown {
      for await _ in await UnixSignalsSequence(trapping: .sigusr2) {
        audit.record(
          AuditEvent(id: DecisionID(from: random), at: clock.now(), kind: .upgradeRequested, detail: ["by": "SIGUSR2"]))
        _ = await upgrading.upgrade(within: Self.patience)
      }
    }
  }
}
