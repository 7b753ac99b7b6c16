import MoongateSDK

// Charging, and what a full limit answers.

/// A try that is charged and not settled yet.
struct Charged: Sendable {
  let id: ReservationID
  let limits: [ResolvedLimit]
  /// The try's own place in each limit, from 1: of 200 at once each has another (exact.md).
  let places: [Int]
  /// Whether a limit that turns the person's credential off was left out, because nobody may learn that it did. Then
  /// nothing is right.
  var isOff = false

  /// How many tries are left after this one, over all limits.
  var left: Int? { zip(limits, places).map { $0.max - $1 }.min() }
}

extension FlowEngine {
  /// How long a try waits for others that fill its limit and are being judged.
  private static let patience: Duration = .seconds(2)

  /// Charges one try, or one send, against all limits before any work is done for it.
  /// - Parameter hidesDisabled: whether a limit that has turned something of the person off is left out, as if it were
  ///   not there.
  /// - Throws: the refusal where a limit or the timer is against it; nothing is charged then.
  func charge(
    _ limits: [ResolvedLimit], for action: LimitAction, timer: ResendTimer?, hidesDisabled: Bool = false,
    _ request: RequestContext
  ) async throws(FlowError) -> Charged {
    if !action.hasOutcome { request.notes.note("act", action.rawValue) }
    var limits = limits
    var isOff = false
    let id = ReservationID(from: random)
    request.watch?.asked(action, charged: limits.count, by: id)
    let started = ContinuousClock.now
    var pause: Duration = .milliseconds(10)
    while true {
      let charge = ReservationRequest(
        id: id, now: max(request.now, clock.now()), limits: limits, timer: timer, isSettled: !action.hasOutcome)
      switch try await asking({ () async throws(StoreFault) in try await store.reserve(charge) }) {
      case .reserved(let places, _): return Charged(id: id, limits: limits, places: places, isOff: isOff)
      case .refused(let refusal):
        // Attack: "turned off" tells that there is something. Without this limit the try is counted as an unknown
        // person's is.
        if hidesDisabled, refusal.reason == .disabled, let off = refusal.limit, off.turnsPersonOff, limits.contains(off)
        {
          request.decided(by: off, used: nil, lockedUntil: nil)
          limits.removeAll { $0 == off }
          isOff = true
          continue
        }
        // For whoever asks why; where the store does not say, the refusal stands all the same.
        if let states = try? await store.counters(limits, at: request.now) { request.notes.uncharged(limits, states) }
        throw halt(refusal, of: action, request)
      case .filledByPending:
        guard ContinuousClock.now - started < Self.patience, waiting.enter() else {
          throw request.refusal(limits.first?.fullCode(of: action) ?? .rateLimited, until: request.now + .seconds(1))
        }
        try? await Task.sleep(for: pause)
        waiting.leave()
        pause = min(pause * 2, .milliseconds(100))
      }
    }
  }

  /// Counts one event against a limit of the core's own, if it is within the limit.
  func count(_ limit: ResolvedLimit, _ request: RequestContext) async throws(FlowError) -> ReservationResult {
    let charge = ReservationRequest(
      id: ReservationID(from: random), now: max(request.now, clock.now()), limits: [limit], timer: nil, isSettled: true)
    return try await asking { () async throws(StoreFault) in try await store.reserve(charge) }
  }

  /// Counts an event that has no outcome: the begin of a step, or an account that is about to be made.
  func count(_ limits: [ResolvedLimit], as action: LimitAction, _ request: RequestContext) async throws(FlowError) {
    let act = request.notes.lines["act"]
    if limits.isEmpty {
      request.watch?.asked(action)
    } else {
      _ = try await charge(limits, for: action, timer: nil, request)
    }
    request.notes.note("act", act)
  }

  /// What the ledger's refusal is to a client.
  func halt(_ refusal: ReservationRefusal, of action: LimitAction, _ request: RequestContext) -> FlowError {
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
      request.decided(by: "timers.resend_after", of: request.notes.subject.provider)
      return
    }
    switch refusal.reason {
    case .locked(let until): request.decided(by: limit, used: nil, lockedUntil: until)
    case .full: request.decided(by: limit, used: limit.max, lockedUntil: nil)
    case .disabled, .timer: request.decided(by: limit, used: nil, lockedUntil: nil)
    }
  }

  /// While a lock of verifying stands, nothing is sent and nothing is compared.
  /// - Parameters:
  ///   - action: what it is that is refused.
  ///   - hidesDisabled: as of `charge`.
  /// - Returns: whether something of the person is turned off that was left out.
  @discardableResult
  func refuseWhileLocked(
    _ limits: [ResolvedLimit], for action: LimitAction = .verify, hidesDisabled: Bool = false, _ request: RequestContext
  )
    async throws(FlowError) -> Bool
  {
    guard !limits.isEmpty else { return false }
    let states = try await asking { () async throws(StoreFault) in try await store.counters(limits, at: request.now) }
    request.notes.uncharged(limits, states)
    for (limit, state) in zip(limits, states) where state.isDisabled || state.isLocked(at: request.now) {
      request.decided(
        by: limit, used: state.used, lockedUntil: state.isLocked(at: request.now) ? state.lockedUntil : nil)
    }
    let isHidden = zip(limits, states).contains { $1.isDisabled && hidesDisabled && $0.turnsPersonOff }
    if zip(limits, states).contains(where: { $1.isDisabled && !(hidesDisabled && $0.turnsPersonOff) }) {
      request.watch?.asked(action)
      throw request.refusal(.disabled)
    }
    if let until = states.compactMap(\.lockedUntil).max(), request.now < until {
      request.watch?.asked(action)
      throw request.refusal(.tooManyAttempts, until: until)
    }
    return isHidden
  }

  /// Settles, and nothing else.
  @discardableResult
  func settle(_ changes: [Change], _ request: RequestContext) async throws(FlowError) -> [LockBegun] {
    switch try await asking({ () async throws(StoreFault) in try await store.apply(changes, at: request.now) }) {
    case .applied(let locks): return locks
    case .conflict: return []
    }
  }

  /// Stores the flow as it is now, and gives an attempt back, also where a rival has changed the flow meanwhile.
  /// - Returns: whether it was stored.
  @discardableResult
  func keep(_ machine: FlowMachine, givingBack refund: Change, _ request: RequestContext) async throws(FlowError)
    -> Bool
  {
    switch try await asking({ () async throws(StoreFault) in
      try await store.apply([refund, .putFlow(machine.record)], at: request.now)
    }) {
    case .applied:
      pending.remove(machine.record.id)
      return true
    case .conflict:
      try await settle([refund], request)
      return false
    }
  }

  /// Stores the flow as it is now, with what belongs to the same moment.
  func store(_ machine: FlowMachine, _ changes: [Change], id: FlowID, _ request: RequestContext) async throws(FlowError)
    -> FlowView
  {
    switch try await asking({ () async throws(StoreFault) in
      try await store.apply(changes + [.putFlow(machine.record)], at: request.now)
    }) {
    case .applied:
      pending.remove(id.hash)
      return try await view(of: machine.record, id: id, request)
    case .conflict: throw request.refusal(.stepNotOpen)
    }
  }
}

extension ResolvedLimit {
  /// The code of 429 when this limit is full (exact.md, "Codes of 429").
  func fullCode(of action: LimitAction) -> RefusalCode {
    switch action {
    case .verify: .tooManyAttempts
    case .send: key.isPersonal ? .sendLimit : .rateLimited
    case .begin, .register: .rateLimited
    }
  }
}
