import Logging
import MoongateSDK
import Synchronization

/// Asks the sites of identities about them again, in the background, as long as their accounts have live sessions.
///
/// A gateway claims what is due in the store, so that only one of an installation asks about an identity at a time. The
/// claim lasts longer than a call: a gateway that dies loses it, and one that hangs cannot write under it.
package final class IdentityRechecks: Sendable {
  /// The time limit of a call.
  package static let limit: Duration = .seconds(60)
  static let claim: Duration = .seconds(90)
  /// The maximum number of calls at the same time.
  static let atOnce = 16
  /// After this many failures in a row, a provider is not called during the pause. It is not called either while this
  /// many calls ignore that they were cancelled.
  static let most = 3
  static let pause: Duration = .seconds(30)
  /// The longest time before a site that did not answer is asked again.
  static let retry: Duration = .seconds(60)
  /// How long the state of a provider without `recheck` is kept, in case an operator writes it again.
  static let memory: Duration = .seconds(86_400)
  /// After this time without a claim, this gateway counts as started again.
  static let gap: Duration = .seconds(300)
  /// How long a gateway asks before it ends sessions whose grace ran out while nobody asked.
  static let least: Duration = .seconds(600)

  struct State {
    /// Claims whose calls run, and places for claims that are being read.
    var running = 0
    /// Until then nothing is claimed, because the store did not answer.
    var pausedUntil: Timestamp?
    /// Since when this gateway claims without a gap.
    var since: Timestamp?
    var last: Timestamp?
    var failures: [ProviderName: (count: Int, last: Timestamp)] = [:]
    /// How many calls ignore that they were cancelled.
    var stuck: [ProviderName: Int] = [:]
    /// How many states could not be opened.
    var unreadable = 0

    fileprivate mutating func hasClaimed(_ count: Int, of places: Int, at now: Timestamp) {
      running -= places - count
      if last.map({ now + IdentityRechecks.gap < $0 || $0 + IdentityRechecks.gap < now }) ?? true { since = now }
      last = now
    }
  }

  enum Verdict {
    case confirmed(Identifier, sealed: [UInt8])
    case ended(String)
    case unanswered
    /// The provider is not called, because it has failed.
    case paused(until: Timestamp)
    /// The sign-in has brought nothing to ask with.
    case unaskable
  }

  let engine: FlowEngine
  let sleep: @Sendable (Duration) async -> Void
  let state = Mutex(State())

  /// - Parameter sleep: waits for the time limit of a call, or until it is cancelled.
  package init(
    _ engine: FlowEngine, sleep: @escaping @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) }
  ) {
    self.engine = engine
    self.sleep = sleep
  }

  /// Makes rechecks that are due until none is left, beside those of earlier steps. Once cancelled, it begins no
  /// further calls, and waits for its running ones: a site may have replaced a token, which must be stored.
  package func step() async {
    await withTaskGroup(of: Void.self) { group in
      var running = 0
      repeat {
        for claim in await claims() {
          running += 1
          group.addTask {
            await self.run(claim)
            self.state.withLock { $0.running -= 1 }
          }
        }
        if await group.next() != nil { running -= 1 }
      } while running > 0
    }
  }

  /// As many claims as calls may begin. They count as running.
  private func claims() async -> [ClaimedRecheck] {
    let now = engine.clock.now()
    guard !Task.isCancelled else { return [] }
    let places = state.withLock { state -> Int in
      guard state.pausedUntil.map({ $0 <= now }) ?? true else { return 0 }
      defer { state.running = Self.atOnce }
      return Self.atOnce - state.running
    }
    guard places > 0 else { return [] }
    do {
      let claims = try await engine.store.claimRechecks(limit: places, until: now + Self.claim, at: now)
      state.withLock { $0.hasClaimed(claims.count, of: places, at: now) }
      return claims
    } catch {
      state.withLock { state in
        state.running -= places
        state.pausedUntil = now + Self.pause
      }
      engine.logger.warning("identities cannot be rechecked", metadata: ["fault": "\(error)"])
      return []
    }
  }

  private func run(_ claim: ClaimedRecheck) async {
    let generation = engine.generations.current
    let name = claim.recheck.provider
    let registry = generation.registry ?? engine.providers
    do {
      guard let settings = generation.gateway.providers[name]?.recheck, generation.policies[name] != nil,
        registry.proves(claim.identity, by: name), let provider = registry[name] as? any Rechecking
      else { return try await postpone(claim) }
      // Attack: a refresh token of someone who has signed out long ago is used, and kept, for ever.
      guard try await isInUse(claim) else { return try await rest(claim, settings) }
      let asked = engine.clock.now()
      let verdict = await ask(provider, about: claim, generation, at: asked)
      switch verdict {
      case .confirmed(let identity, let sealed):
        try await confirm(identity, sealed, claim, settings, at: asked)
      case .ended(let because): try await end(claim, because: because, keepsTokens: false)
      case .unanswered, .paused, .unaskable: try await wait(claim, settings, verdict)
      }
    } catch {
      // The claim ends, and the identity is rechecked again.
      engine.logger.warning(
        "a recheck could not be stored", metadata: ["provider": "\(name)", "fault": "\(error)"])
    }
  }

  /// Rechecks an identity again later that was not confirmed, or ends its sessions because the grace has passed.
  ///
  /// Attack on ourselves: the gateway was off for a weekend, its machine was suspended, or its clock was wrong. The
  /// first call that fails would end everybody's sessions. Time in which it did not ask does not count. Twice the grace
  /// is the end, because a gateway that restarts again and again would never end any, but not before it has asked for
  /// ten minutes.
  private func wait(_ claim: ClaimedRecheck, _ settings: RecheckSettings, _ verdict: Verdict) async throws(StoreFault) {
    let now = engine.clock.now()
    let confirmed = claim.recheck.confirmedAt
    let since = state.withLock { $0.since } ?? now
    let latest = max(confirmed + settings.grace * 2, since + Self.least)
    var because = "the site has not confirmed the identity since \(confirmed.text)"
    var next = now + Self.spread(min(settings.interval, Self.retry), engine.random)
    let last: Timestamp
    switch verdict {
    case .paused(let until):
      last = latest
      next = max(next, until)
    case .unaskable:
      last = confirmed + settings.grace
      next = now + Self.spread(settings.interval, engine.random)
      because = "the sign-in at \(confirmed.text) has brought nothing to ask the site with"
    default: last = min(latest, max(confirmed, since) + settings.grace)
    }
    // The site has not said that the user is gone, so tokens stay. They lose the groups.
    guard now < last else { return try await end(claim, because: because, keepsTokens: true) }
    try await store(claim.recheck.next(at: min(next, last)), claim)
  }

  // MARK: the store

  /// The interval, varied by up to a tenth, so that users who sign in at the same time are not rechecked at the same
  /// time for ever.
  static func spread(_ interval: Duration, _ random: any RandomSource) -> Duration {
    interval * (0.9 + 0.2 * Double(random.uniform(below: 1_024)) / 1_024)
  }

  /// Whether the account has a live session, whatever has opened it, or a token: groups of the identity are facts of
  /// the account.
  private func isInUse(_ claim: ClaimedRecheck) async throws(StoreFault) -> Bool {
    let now = engine.clock.now()
    if try await engine.store.sessions(of: claim.account).contains(where: { now < $0.deadline }) { return true }
    let tokens = try await engine.store.accessTokens(of: claim.account)
    guard !tokens.isEmpty, let account = try await engine.store.account(claim.account) else { return false }
    return tokens.contains { !$0.isExpired(at: now) && $0.owner?.epoch == account.epoch }
  }

  /// Keeps the recheck of an account without sessions until the grace has passed: an app may not have redeemed its code
  /// yet, and a user who has signed out may come back. Then what the site has said is removed.
  ///
  /// Attack: someone who was removed from a group at the site signs out, waits, and signs in by a passkey: nobody asks
  /// about the group again.
  private func rest(_ claim: ClaimedRecheck, _ settings: RecheckSettings) async throws(StoreFault) {
    let now = engine.clock.now()
    let end = claim.recheck.confirmedAt + max(settings.grace, GrantCode.lifetime)
    guard end <= now else {
      let next = now + Self.spread(settings.interval, engine.random)
      try await store(claim.recheck.next(at: min(next, end)), claim)
      return
    }
    try await store(nil, claim, with: changes(of: claim, to: claim.identity.withoutDetails, at: now))
  }

  /// - Returns: false if the identity was removed, proved or claimed since.
  @discardableResult
  func store(_ recheck: StoredRecheck?, _ claim: ClaimedRecheck, with others: [Change] = [])
    async throws(StoreFault) -> Bool
  {
    let change = Change.putRecheck(account: claim.account, claim.identity, recheck, under: claim.fence)
    let result = try await engine.store.apply([change] + others, at: engine.clock.now())
    if case .applied = result { return true }
    return false
  }

  /// Stores what the site says about the identity. Sessions see it like any change of their account.
  private func confirm(
    _ identity: Identifier, _ sealed: [UInt8], _ claim: ClaimedRecheck, _ settings: RecheckSettings, at now: Timestamp
  ) async throws(StoreFault) {
    let due = now + Self.spread(settings.interval, engine.random)
    let recheck = StoredRecheck(
      provider: claim.recheck.provider, sealed: sealed, confirmedAt: now, dueAt: due)
    try await store(recheck, claim, with: changes(of: claim, to: identity, at: now))
  }

  /// Replaces what is stored about the identity.
  private func changes(of claim: ClaimedRecheck, to identity: Identifier, at now: Timestamp) -> [Change] {
    let old = claim.identity
    var changes: [Change] = []
    if !old.hasSameDetails(as: identity) { changes.append(.renewIdentifier(account: claim.account, identity)) }
    if Set(old.groups) != Set(identity.groups) || old.attributes != identity.attributes {
      var detail: [String: String] = [:]
      detail["groups_added"] = Self.listed(Set(identity.groups).subtracting(old.groups))
      detail["groups_removed"] = Self.listed(Set(old.groups).subtracting(identity.groups))
      changes.append(
        .audit(
          AuditEvent(
            id: DecisionID(from: engine.random), at: now, kind: .identityChanged, provider: claim.recheck.provider,
            account: claim.account, identifier: engine.keys.logHash(old.value), detail: detail)))
    }
    return changes
  }

  /// Names for an event; nil if there are none.
  private static func listed(_ names: Set<String>) -> String? {
    guard !names.isEmpty else { return nil }
    let shown = names.sorted().prefix(10).joined(separator: ", ")
    return names.count > 10 ? "\(shown) and \(names.count - 10) more" : shown
  }

  /// Ends the sessions that the identity has opened, and removes its groups and attributes.
  ///
  /// Attack: someone who is disabled at the site signs in by a passkey or a password of the account, and still has the
  /// groups of the site. The next sign-in there brings them back.
  private func end(_ claim: ClaimedRecheck, because: String, keepsTokens: Bool) async throws(StoreFault) {
    let name = claim.recheck.provider
    let ending = SessionEnding(store: engine.store, clock: engine.clock, random: engine.random)
    let changes =
      [Change.putRecheck(account: claim.account, claim.identity, nil, under: claim.fence)]
      + changes(of: claim, to: claim.identity.withoutDetails, at: engine.clock.now())
    let count = try await ending.end(
      of: claim.identity, provedBy: name, siteSession: nil,
      because: .recheck(because: because, keepsTokens: keepsTokens, first: changes))
    guard count > 0 else { return }
    engine.logger.notice(
      "a recheck has ended the sessions of an identity",
      metadata: [
        "provider": "\(name)", "account": "\(claim.account)", "sessions": "\(count)", "because": "\(because)",
      ])
  }

  /// Keeps the recheck of a provider that is not configured for a while.
  private func postpone(_ claim: ClaimedRecheck) async throws(StoreFault) {
    let now = engine.clock.now()
    let isOld = claim.recheck.confirmedAt + Self.memory <= now
    try await store(
      isOld ? nil : claim.recheck.next(at: now + .seconds(3_600)), claim)
  }
}

extension StoredRecheck {
  /// The next recheck with the same state.
  fileprivate func next(at dueAt: Timestamp) -> StoredRecheck {
    StoredRecheck(provider: provider, sealed: nil, confirmedAt: confirmedAt, dueAt: dueAt)
  }
}

extension Identifier {
  /// The identifier without what its site says about it.
  fileprivate var withoutDetails: Identifier { Identifier(kind: kind, value: value, display: display) }
}
