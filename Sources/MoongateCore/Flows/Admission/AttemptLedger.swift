import MoongateSDK

// Charges attempts and sends, and turns a reached limit into a refusal.

/// An attempt that is charged and not settled yet.
struct Charged: Sendable {
  let id: ReservationID
  let limits: [ResolvedLimit]
  /// The attempt's position in each limit, from 1. Each of 200 concurrent attempts has a different position.
  let places: [Int]
  /// Whether a limit that disables the user's credential was left out, because the policy conceals. The attempt then
  /// never succeeds.
  var isDisabled = false
  /// The account that was to be read with the charge.
  var account: Account?

  /// How many attempts remain after this one, over all limits.
  var left: Int? { zip(limits, places).map { $0.max - $1 }.min() }
}

/// Charges attempts and sends in the store, and settles them.
struct AttemptLedger: FlowPart {
  let services: FlowServices
  /// Limits the attempts that wait for earlier attempts to be settled.
  let waiting = ConcurrencyLimit(1_000)

  /// How long an attempt waits for others that fill its limit and are still being judged.
  private static let timeLimit: Duration = .seconds(2)

  /// More than five parameters: what is charged, how, and what is read with it.
  ///
  /// Charges one attempt or one send against all limits, before any work is done for it.
  /// - Parameters:
  ///   - hidesDisabled: whether to ignore a limit that has disabled a personal credential.
  ///   - barring: limits that are not charged, and that refuse while they are locked or have disabled something.
  ///   - flow: the flow of the attempt if it was taken from memory.
  ///   - account: the account to read in the transaction that charges.
  /// - Throws: the refusal if one of the limits or the timer does not allow it, or the flow has changed. Nothing is
  ///   charged then.
  func charge(
    _ limits: [ResolvedLimit], for action: LimitAction, timer: ResendTimer?, hidesDisabled: Bool = false,
    unlessLocked barring: [ResolvedLimit] = [], in flow: RecentFlow? = nil, reading account: String? = nil,
    _ request: RequestContext
  ) async throws(FlowError) -> Charged {
    if !action.hasOutcome { request.trace.note("act", action.rawValue) }
    var limits = limits
    var isDisabled = false
    let id = ReservationID(from: random)
    request.watch?.asked(action, charged: limits.count, by: id)
    let started = ContinuousClock.now
    var pause: Duration = .milliseconds(10)
    while true {
      let charge = ReservationRequest(
        id: id, now: max(request.now, clock.now()), limits: limits, timer: timer, countsAtOnce: !action.hasOutcome,
        unlessLocked: barring, hidesDisabled: hidesDisabled, in: flow?.version, reading: account)
      let result = try await asking { () async throws(StoreFault) in try await store.reserve(charge) }
      flow?.isConfirmed = result != .flowChanged
      switch result {
      case .flowChanged: throw request.refusal(.stepNotOpen, because: .changedMeanwhile)
      case .reserved(let places, let account, let isHidden):
        return Charged(
          id: id, limits: limits, places: places, isDisabled: isDisabled || isHidden, account: account)
      case .barred:
        // If the lock has just ended, ask again.
        try await demandUnlocked(barring, hidesDisabled: hidesDisabled, request)
      case .refused(let refusal):
        // Attack: "turned off" reveals that the account exists. Without this limit, the attempt is counted as an
        // unknown user's is.
        if hidesDisabled, refusal.reason == .disabled, let off = refusal.limit, off.disablesPerson, limits.contains(off)
        {
          request.decided(by: off, used: nil, lockedUntil: nil)
          limits.removeAll { $0 == off }
          isDisabled = true
          continue
        }
        await note(barring + limits, request)
        throw flowError(for: refusal, of: action, request)
      case .filledByPending:
        guard ContinuousClock.now - started < Self.timeLimit, waiting.enter() else {
          await note(barring + limits, request)
          throw request.refusal(limits.first?.fullCode(of: action) ?? .rateLimited, until: request.now + .seconds(1))
        }
        try? await Task.sleep(for: pause)
        waiting.leave()
        pause = min(pause * 2, .milliseconds(100))
      }
    }
  }

  /// Counts one event against one of the core's own limits, if the limit allows it.
  func count(_ limit: ResolvedLimit, _ request: RequestContext) async throws(FlowError) -> ReservationResult {
    try await asking { () async throws(StoreFault) in try await count(limit) }
  }

  /// Counts one event against one of the core's own limits, outside of a request.
  func count(_ limit: ResolvedLimit) async throws(StoreFault) -> ReservationResult { try await count([limit]) }

  /// Counts one event against several of the core's own limits, if all of them allow it.
  func count(_ limits: [ResolvedLimit]) async throws(StoreFault) -> ReservationResult {
    let charge = ReservationRequest(
      id: ReservationID(from: random), now: clock.now(), limits: limits, timer: nil, countsAtOnce: true)
    return try await store.reserve(charge)
  }

  /// Counts an event without an outcome: the begin of a step, or an account that is about to be created.
  func count(_ limits: [ResolvedLimit], as action: LimitAction, _ request: RequestContext) async throws(FlowError) {
    let act = request.trace.lines["act"]
    if limits.isEmpty {
      request.watch?.asked(action)
    } else {
      _ = try await charge(limits, for: action, timer: nil, request)
    }
    request.trace.note("act", act)
  }

  /// Maps a refusal of the ledger to a refusal for the client.
  func flowError(for refusal: ReservationRefusal, of action: LimitAction, _ request: RequestContext) -> FlowError {
    let code = refusal.limit?.fullCode(of: action) ?? .resendTooSoon
    note(refusal, request)
    return switch refusal.reason {
    case .disabled: request.refusal(.disabled)
    case .locked(let until), .full(let until): request.refusal(code, until: until)
    case .timer(let until): request.refusal(.resendTooSoon, until: until, resendAt: until)
    }
  }

  private func note(_ refusal: ReservationRefusal, _ request: RequestContext) {
    guard let limit = refusal.limit else {
      request.decided(by: "timers.resend_after", of: request.trace.subject.provider)
      return
    }
    switch refusal.reason {
    case .locked(let until): request.decided(by: limit, used: nil, lockedUntil: until)
    case .full: request.decided(by: limit, used: limit.max, lockedUntil: nil)
    case .disabled, .timer: request.decided(by: limit, used: nil, lockedUntil: nil)
    }
  }

  /// Records the state of limits for `policy explain`. If the store cannot provide it, the refusal is still returned.
  private func note(_ limits: [ResolvedLimit], _ request: RequestContext) async {
    if let states = try? await store.counters(limits, at: request.now) { request.trace.uncharged(limits, states) }
  }

  /// Refuses the request while an attempt limit is locked. Nothing is sent or compared then.
  /// - Parameter hidesDisabled: as in `charge`.
  func refuseWhileLocked(_ limits: [ResolvedLimit], hidesDisabled: Bool = false, _ request: RequestContext)
    async throws(FlowError)
  {
    guard !limits.isEmpty else { return }
    do throws(FlowError) {
      try await demandUnlocked(limits, hidesDisabled: hidesDisabled, request)
    } catch {
      request.watch?.asked(.verify)
      throw error
    }
  }

  private func demandUnlocked(_ limits: [ResolvedLimit], hidesDisabled: Bool, _ request: RequestContext)
    async throws(FlowError)
  {
    let states = try await asking { () async throws(StoreFault) in try await store.counters(limits, at: request.now) }
    request.trace.uncharged(limits, states)
    for (limit, state) in zip(limits, states) where state.isDisabled || state.isLocked(at: request.now) {
      request.decided(
        by: limit, used: state.used, lockedUntil: state.isLocked(at: request.now) ? state.lockedUntil : nil)
    }
    if zip(limits, states).contains(where: { $1.isDisabled && !(hidesDisabled && $0.disablesPerson) }) {
      throw request.refusal(.disabled)
    }
    if let until = states.compactMap(\.lockedUntil).max(), request.now < until {
      throw request.refusal(.tooManyAttempts, until: until)
    }
  }

  /// Applies settlements only.
  @discardableResult
  func settle(_ changes: [Change], _ request: RequestContext) async throws(FlowError) -> [LockBegun] {
    switch try await asking({ () async throws(StoreFault) in try await store.apply(changes, at: request.now) }) {
    case .applied(let locks, _): return locks
    case .conflict: return []
    }
  }
}

extension ResolvedLimit {
  /// The code of the 429 response when this limit is reached.
  func fullCode(of action: LimitAction) -> RefusalCode {
    switch action {
    case .verify: .tooManyAttempts
    case .send: key.isPersonal ? .sendLimit : .rateLimited
    case .begin, .register: .rateLimited
    }
  }
}

extension [ResolvedLimit] {
  /// The limits whose counters none of the others uses, so that an attempt is charged once to each counter.
  func notCounted(by others: [ResolvedLimit]) -> [ResolvedLimit] {
    filter { limit in !others.contains { $0.counter == limit.counter } }
  }
}
