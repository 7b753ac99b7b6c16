import Logging
import MoongateSDK
import Synchronization

// A call to the site of an identity.

extension IdentityRechecks {
  func ask(
    _ provider: any Rechecking, about claim: ClaimedRecheck, _ generation: any PolicyGeneration, at now: Timestamp
  ) async -> Verdict {
    let name = claim.recheck.provider
    guard let sealed = claim.recheck.sealed, !sealed.isEmpty else { return .unaskable }
    if let until = pause(of: name, at: now) { return .paused(until: until) }
    let start = ContinuousClock.now
    let request = engine.maintenanceRequest(generation)
    guard let bytes = try? engine.keys.open(sealed, for: Self.owner(claim.identity, name)) else {
      isUnreadable(name)
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
    do {
      let answer = try await call(provider, known, with: tools)
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

  /// Attack on ourselves: a call that ignores its cancellation holds its place for ever, and no identity is rechecked
  /// any more.
  private func call(_ provider: any Rechecking, _ known: RecheckedIdentity, with tools: StepTools) async throws
    -> RecheckAnswer
  {
    let outcome = FirstOutcome<CallEnd>()
    let call = Task {
      do { outcome.end(.answered(try await provider.recheck(known, with: tools))) } catch {
        outcome.end(.failed(error))
      }
    }
    let timer = Task { [sleep] in
      await sleep(Self.limit)
      outcome.end(.late)
    }
    defer { timer.cancel() }
    switch await outcome.value {
    case .answered(let answer): return answer
    case .failed(let error): throw error
    case .late:
      call.cancel()
      let name = provider.descriptor.name
      state.withLock { $0.stuck[name, default: 0] += 1 }
      Task { [self] in
        await call.value
        state.withLock { $0.stuck[name, default: 0] -= 1 }
      }
      throw RecheckFault("it took longer than \(Self.limit), and is cancelled")
    }
  }

  private enum CallEnd: Sendable {
    case answered(RecheckAnswer)
    case failed(any Error)
    case late
  }

  /// Until when the provider is not called; nil if it is.
  private func pause(of name: ProviderName, at now: Timestamp) -> Timestamp? {
    state.withLock { state -> Timestamp? in
      if state.stuck[name, default: 0] >= Self.most { return now + Self.pause }
      guard let failures = state.failures[name], failures.count >= Self.most, failures.last <= now else { return nil }
      let end = failures.last + Self.pause
      return now < end ? end : nil
    }
  }

  private func isUnreadable(_ name: ProviderName) {
    let count = state.withLock { state -> Int in
      state.unreadable += 1
      return state.unreadable
    }
    guard count <= Self.most || count.isMultiple(of: 100) else { return }
    engine.logger.error(
      "the state of a recheck cannot be opened: it was changed, or sealed under another master key",
      metadata: ["provider": "\(name)", "states": "\(count)"])
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
}

/// What is wrong with a provider's answer to a recheck.
private struct RecheckFault: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
