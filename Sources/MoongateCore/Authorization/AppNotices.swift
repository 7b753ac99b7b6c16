import Logging
import MoongateSDK

/// Sends logout tokens to apps (OpenID Connect Back-Channel Logout 1.0). The store records which are due; all gateways
/// share the work.
package final class AppNotices: Sendable {
  /// The maximum number of notices that are sent at once.
  private static let batch = 20
  /// How long a claimed notice is left to the gateway that claimed it. Longer than a request takes.
  private static let claim: Duration = .seconds(30)
  /// The wait after the first failed attempt. It doubles with each further one.
  private static let firstWait: Duration = .seconds(5)
  /// How long attempts continue after the session has ended.
  private static let patience: Duration = .seconds(3600)

  private let apps: Apps
  private let web: any WebClient
  private let logger: Logger

  package init(apps: Apps, web: any WebClient, logger: Logger) {
    self.apps = apps
    self.web = web
    self.logger = logger
  }

  /// Sends the notices that are due.
  /// - Returns: whether there may be more.
  package func step() async throws(StoreFault) -> Bool {
    let now = apps.clock.now()
    let claimed = try await apps.store.claimAppNotices(limit: Self.batch, until: now + Self.claim, at: now)
    let settled = await withTaskGroup(of: Change.self) { group in
      for notice in claimed { group.addTask { await self.attempt(notice) } }
      var changes: [Change] = []
      for await change in group { changes.append(change) }
      return changes
    }
    if !settled.isEmpty { _ = try await apps.store.apply(settled, at: apps.clock.now()) }
    // One app gets only a part of a batch.
    return !claimed.isEmpty
  }

  /// Sends one notice.
  /// - Returns: when it is due again.
  private func attempt(_ notice: AppNotice) async -> Change {
    let generation = apps.generations.current
    // The operator has removed the app or its address since.
    guard let app = generation.apps[notice.app], let url = app.signOutNotice else {
      return .settleAppNotice(notice.grant, nextDue: nil)
    }
    let problem: String
    do {
      let token = try await apps.logoutToken(
        for: notice, app, issuer: generation.gateway.publicURL.description)
      let answer = try await web.send(
        WebRequest(
          method: "POST", url: url, headers: [("content-type", "application/x-www-form-urlencoded")],
          body: Array("logout_token=\(token)".utf8)))
      if answer.status == 200 || answer.status == 204 { return .settleAppNotice(notice.grant, nextDue: nil) }
      problem = "it answered \(answer.status)"
    } catch {
      problem = (error as? WebFault)?.reason ?? "\(error)"
    }
    let next = Self.next(after: notice, at: apps.clock.now())
    logger.log(
      level: next == nil ? .warning : .info,
      next == nil ? "an app was not told about a sign-out" : "an app could not be told about a sign-out yet",
      metadata: ["app": "\(notice.app)", "problem": "\(problem)", "tries": "\(notice.tries + 1)"])
    return .settleAppNotice(notice.grant, nextDue: next)
  }

  /// When a notice is due again after a failed attempt; nil: never.
  static func next(after notice: AppNotice, at now: Timestamp) -> Timestamp? {
    let next = now + firstWait * (1 << min(notice.tries, 10))
    return next < notice.since + patience ? next : nil
  }
}
