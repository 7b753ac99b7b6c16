/// Reports tokens that have expired, once across all gateways.
package struct AccessTokenSweep: Sendable {
  private static let stretch = 100

  private let store: any Store
  private let clock: any GatewayClock
  private let random: any RandomSource

  package init(store: any Store, clock: any GatewayClock, random: any RandomSource) {
    self.store = store
    self.clock = clock
    self.random = random
  }

  /// Processes one batch.
  /// - Returns: whether there may be more.
  package func step() async throws(StoreFault) -> Bool {
    let now = clock.now()
    let ended = try await store.endedAccessTokens(at: now, limit: Self.stretch)
    for token in ended {
      // On a conflict, another gateway has reported the token already.
      if token.isExpired(at: now) {
        _ = try await store.apply(
          [.noteAccessTokenExpired(token.id), .audit(.about(token, .tokenExpired, at: now, random))], at: now)
      } else {
        let event = AuditEvent.about(token, .tokenRevoked, at: now, random, ["reason": "account_changed"])
        _ = try await store.apply([.endAccessToken(token.id), .audit(event)], at: now)
      }
    }
    return ended.count == Self.stretch
  }
}
