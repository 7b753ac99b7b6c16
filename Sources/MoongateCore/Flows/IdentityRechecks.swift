import Logging
import MoongateSDK
import Synchronization

/// Asks the sites of identities about them again, in the background, as long as the identities have live sessions.
///
/// A gateway claims what is due in the store, so that only one of an installation asks about an identity at a time. The
/// claim lasts longer than a call: a gateway that dies loses it, and one that hangs cannot write under it.
package final class IdentityRechecks: Sendable {
  /// The time limit of a call.
  package static let limit: Duration = .seconds(60)
  static let claim: Duration = .seconds(90)
  /// The maximum number of calls at the same time.
  static let atOnce = 16
  /// After this many failures in a row, a provider is not called during the pause.
  static let most = 3
  static let pause: Duration = .seconds(30)
  /// The longest time before a site that did not answer is asked again.
  static let retry: Duration = .seconds(60)
  /// How long the state of a provider without `recheck` is kept, in case an operator writes it again.
  static let memory: Duration = .seconds(86_400)

  private struct State {
    var isRunning = false
    /// Until then nothing is claimed, because the store did not answer.
    var pausedUntil: Timestamp?
    var failures: [ProviderName: (count: Int, last: Timestamp)] = [:]
  }

  private enum Verdict {
    case confirmed(Identifier, sealed: [UInt8])
    case ended(String)
    case unanswered
  }

  private let engine: FlowEngine
  private let sleep: @Sendable (Duration) async -> Void
  private let state = Mutex(State())

  /// - Parameter sleep: waits for the time limit of a call, or until it is cancelled.
  package init(
    _ engine: FlowEngine, sleep: @escaping @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) }
  ) {
    self.engine = engine
    self.sleep = sleep
  }

  /// Makes all rechecks that are due, unless they are being made. Once cancelled, it begins no further calls, and waits
  /// for the running ones: a site may have replaced a token, which must be stored.
  package func step() async {
    let begins = state.withLock { state in
      defer { state.isRunning = true }
      return !state.isRunning
    }
    guard begins else { return }
    await withTaskGroup(of: Void.self) { group in
      var running = 0
      repeat {
        for claim in await claims(Self.atOnce - running) {
          running += 1
          group.addTask { await self.run(claim) }
        }
        if await group.next() != nil { running -= 1 }
      } while running > 0
    }
    state.withLock { $0.isRunning = false }
  }

  private func claims(_ count: Int) async -> [ClaimedRecheck] {
    let now = engine.clock.now()
    guard !Task.isCancelled, state.withLock({ $0.pausedUntil.map { $0 <= now } ?? true }) else { return [] }
    do {
      return try await engine.store.claimRechecks(limit: count, until: now + Self.claim, at: now)
    } catch {
      state.withLock { $0.pausedUntil = now + Self.pause }
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
      guard try await hasLiveSession(claim) else {
        try await store(nil, claim)
        return
      }
      let asked = engine.clock.now()
      switch await ask(provider, about: claim, generation, at: asked) {
      case .confirmed(let identity, let sealed):
        try await confirm(identity, sealed, claim, settings, at: asked)
      case .ended(let because): try await end(claim, because: because)
      case .unanswered:
        let last = claim.recheck.confirmedAt + settings.grace
        let now = engine.clock.now()
        if last <= now {
          let since = claim.recheck.confirmedAt.text
          return try await end(claim, because: "the site has not confirmed the identity since \(since)")
        }
        let next = now + Self.spread(min(settings.interval, Self.retry), engine.random)
        try await store(claim.recheck.next(at: min(next, last)), claim)
      }
    } catch {
      // The claim ends, and the identity is rechecked again.
      engine.logger.warning(
        "a recheck could not be stored", metadata: ["provider": "\(name)", "fault": "\(error)"])
    }
  }

  // MARK: the site

  private func ask(
    _ provider: any Rechecking, about claim: ClaimedRecheck, _ generation: any PolicyGeneration, at now: Timestamp
  ) async -> Verdict {
    let name = claim.recheck.provider
    guard mayAsk(name, at: now) else { return .unanswered }
    let start = ContinuousClock.now
    let request = engine.maintenanceRequest(generation)
    guard let sealed = claim.recheck.sealed,
      let bytes = try? engine.keys.open(sealed, for: Self.owner(claim.identity, name))
    else {
      engine.logger.error(
        "the state of a recheck cannot be opened: it was changed, or sealed under another master key",
        metadata: ["provider": "\(name)"])
      return .unanswered
    }
    let secret = ProviderInput(
      fields: ["state": .text(String(decoding: bytes, as: UTF8.self))], defaultRegion: "")
    let redaction = engine.calls.redaction(of: name, secret, [claim.identity], request)
    let tools = engine.calls.tools(for: provider, redaction, request)
    let kept = KeptState(bytes)
    let known = RecheckedIdentity(identity: claim.identity, state: bytes) { [self] state in
      try await keep(state, claim)
      kept.bytes.withLock { $0 = state }
    }
    let call = Task { try await provider.recheck(known, with: tools) }
    let timer = Task { [sleep] in
      await sleep(Self.limit)
      call.cancel()
    }
    defer { timer.cancel() }
    do {
      let answer = try await call.value
      answered(name)
      guard case .confirmed(let identity) = answer else {
        engine.providerMetrics.record(.recheck, of: name, .ended, since: start)
        guard case .ended(let because) = answer else { return .unanswered }
        return .ended(String(redaction(because).prefix(200)))
      }
      // Attack: a site answers about another of its users, whose groups this one would get.
      guard identity == claim.identity else { throw RecheckFault("it answers about another identity") }
      if let problem = identity.detailProblem { throw RecheckFault("its answer cannot be stored: \(problem)") }
      // Sealed again each time, so that no master key is needed for longer than an interval.
      let sealed = try Self.seal(kept.bytes.withLock { $0 }, of: claim.identity, by: name, engine.keys)
      engine.providerMetrics.record(.recheck, of: name, .confirmed, since: start)
      return .confirmed(identity, sealed: sealed)
    } catch let denied as IdentityDenied {
      answered(name)
      engine.providerMetrics.record(.recheck, of: name, .ended, since: start)
      return .ended("the policy denies: \(denied.reason)")
    } catch {
      engine.providerMetrics.record(.recheck, of: name, .fault, since: start)
      failed(name, redaction("\(error)"), at: now)
      return .unanswered
    }
  }

  /// The state that a provider has kept last.
  private final class KeptState: Sendable {
    let bytes: Mutex<[UInt8]>

    init(_ bytes: [UInt8]) { self.bytes = Mutex(bytes) }
  }

  private func mayAsk(_ name: ProviderName, at now: Timestamp) -> Bool {
    state.withLock { state in
      guard let failures = state.failures[name], failures.count >= Self.most else { return true }
      return now >= failures.last + Self.pause || now < failures.last
    }
  }

  private func answered(_ name: ProviderName) { state.withLock { $0.failures[name] = nil } }

  private func failed(_ name: ProviderName, _ fault: String, at now: Timestamp) {
    let count = state.withLock { state in
      let count = (state.failures[name]?.count ?? 0) + 1
      state.failures[name] = (count, now)
      return count
    }
    // A site that is down fails once a minute for each of its users.
    guard count <= Self.most || count.isMultiple(of: 100) else { return }
    engine.logger.error(
      "a recheck failed: sessions go on until `recheck_grace` has passed since the last answer",
      metadata: ["provider": "\(name)", "fault": "\(fault)", "failures": "\(count)"])
  }

  // MARK: the store

  /// Seals a state for its identity.
  ///
  /// Attack: someone with write access to the database puts the refresh token of their own identity beside that of
  /// another user, so that the other one is never found to be disabled.
  static func seal(_ state: [UInt8], of identity: Identifier, by provider: ProviderName, _ keys: KeyRing) throws
    -> [UInt8]
  {
    try keys.seal(state, for: owner(identity, provider))
  }

  private static func owner(_ identity: Identifier, _ provider: ProviderName) -> String {
    "recheck \(provider) \(identity.value)"
  }

  /// The interval, varied by up to a tenth, so that users who sign in at the same time are not rechecked at the same
  /// time for ever.
  static func spread(_ interval: Duration, _ random: any RandomSource) -> Duration {
    interval * (0.9 + 0.2 * Double(random.uniform(below: 1_024)) / 1_024)
  }

  /// Whether the identity has opened a session that is live.
  private func hasLiveSession(_ claim: ClaimedRecheck) async throws(StoreFault) -> Bool {
    let now = engine.clock.now()
    return try await engine.store.sessions(of: claim.account).contains { session in
      now < session.deadline && session.passed.contains { $0.provider == claim.recheck.provider }
    }
  }

  /// - Returns: false if the identity was removed, proved or claimed since.
  @discardableResult
  private func store(_ recheck: StoredRecheck?, _ claim: ClaimedRecheck, with others: [Change] = [])
    async throws(StoreFault) -> Bool
  {
    let change = Change.putRecheck(account: claim.account, claim.identity, recheck, under: claim.fence)
    let result = try await engine.store.apply([change] + others, at: engine.clock.now())
    if case .applied = result { return true }
    return false
  }

  /// Stores the state that a provider has replaced. Tries several times, because nothing else has the new token.
  private func keep(_ state: [UInt8], _ claim: ClaimedRecheck) async throws {
    guard state.count <= Proof.longestRecheck else { throw RecheckFault("its new state is too long") }
    let sealed = try Self.seal(state, of: claim.identity, by: claim.recheck.provider, engine.keys)
    let recheck = StoredRecheck(
      provider: claim.recheck.provider, sealed: sealed, confirmedAt: claim.recheck.confirmedAt,
      dueAt: claim.recheck.dueAt)
    for attempt in 1... {
      do {
        if try await store(recheck, claim) { return }
        throw RecheckFault("the identity was proved or removed meanwhile")
      } catch let fault as StoreFault {
        guard attempt < 5 else { throw fault }
        await sleep(.seconds(1))
      }
    }
  }

  /// Stores what the site says about the identity. Sessions see it like any change of their account.
  private func confirm(
    _ identity: Identifier, _ sealed: [UInt8], _ claim: ClaimedRecheck, _ settings: RecheckSettings, at now: Timestamp
  ) async throws(StoreFault) {
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
    let due = now + Self.spread(settings.interval, engine.random)
    let recheck = StoredRecheck(
      provider: claim.recheck.provider, sealed: sealed, confirmedAt: now, dueAt: due)
    try await store(recheck, claim, with: changes)
  }

  /// Names for an event; nil if there are none.
  private static func listed(_ names: Set<String>) -> String? {
    guard !names.isEmpty else { return nil }
    let shown = names.sorted().prefix(10).joined(separator: ", ")
    return names.count > 10 ? "\(shown) and \(names.count - 10) more" : shown
  }

  /// Ends the sessions as if the site had said so.
  private func end(_ claim: ClaimedRecheck, because: String) async throws(StoreFault) {
    let name = claim.recheck.provider
    let ending = SessionEnding(store: engine.store, clock: engine.clock, random: engine.random)
    let count = try await ending.end(
      of: claim.identity, provedBy: name, siteSession: nil, because: .recheck(claim, because: because))
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

/// What is wrong with a provider's answer to a recheck.
private struct RecheckFault: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
