import Logging
import MoongateCore
import ServiceLifecycle

/// Removes accounts without a verified identifier that were not used for `unverified_lifetime` (accounts.lua). Every
/// gateway of a store runs it.
struct UnverifiedAccountsLoop: Service {
  let store: any Store
  let generations: ActiveGeneration
  let clock: any GatewayClock
  let random: any RandomSource
  let logger: Logger

  func run() async throws { await Background.batches(every: .seconds(20)) { await step() } }

  /// - Returns: whether there may be more accounts to remove.
  func step() async -> Bool {
    let now = clock.now()
    do {
      let expired = try await store.expireUnverified(
        unusedSince: now - generations.current.accounts.unverifiedLifetime, at: now)
      if expired.removed > 0 {
        logger.notice("unused unverified accounts were removed", metadata: ["count": "\(expired.removed)"])
        let detail = ["reason": "unverified_lifetime", "count": String(expired.removed)]
        try await store.append([
          AuditEvent(id: DecisionID(from: random), at: now, kind: .accountDeleted, detail: detail)
        ])
      }
      return expired.hasMore
    } catch {
      logger.warning("unverified accounts cannot be removed; retrying later", metadata: ["fault": "\(error)"])
      return false
    }
  }
}
