import MoongateSDK

/// Whom a step counts against: what the keys of limits mean for it.
struct StepSubject: Sendable {
  let provider: ProviderName
  let identifier: Identifier?
  /// The id of the account that the step would open, or is for.
  let account: String?
  /// Whether an unknown identifier must look like a known one.
  let conceals: Bool
  let flow: TokenHash
  let challenge: Challenge?
  let address: ClientAddress
  /// The device's id, where it carries a token of ours.
  var device: [UInt8]?
  /// Whether accounts claim the identifier that nobody has proved: they have one counter.
  var isClaimed = false
  /// Whether this device has passed this provider for the account before: it has counters of its own then.
  var isOwnDevice = false
  /// Whether this device has passed any provider for the account before: limits that count many people together do not
  /// apply to what it begins and has sent there.
  var isTrusted = false

  /// The same, on a device that has counters of its own there.
  func of(ownDevice isOwn: Bool) -> StepSubject {
    var subject = self
    subject.isOwnDevice = isOwnDevice || isOwn
    return subject
  }

  /// The device whose counters are its own here.
  var ownDevice: [UInt8]? { isOwnDevice ? device : nil }

  /// What the key is here, or nil where it does not exist: its limit then does not apply.
  func value(of key: LimitKey) -> [UInt8]? {
    switch key {
    case .phone: identifier?.kind == .phone ? identifier.map { Array($0.value.utf8) } : nil
    case .email: identifier?.kind == .email ? identifier.map { Array($0.value.utf8) } : nil
    case .identifier: identifier.map { Array("\($0.kind.rawValue) \($0.value)".utf8) }
    case .account:
      if let account {
        Array(account.utf8)
      } else if conceals || isClaimed, let identifier {
        // Attack: an account's limit that only known people have would tell who is known; one for each account that
        // claims an address would multiply the tries at it.
        Array("nobody \(identifier.kind.rawValue) \(identifier.value)".utf8)
      } else {
        nil
      }
    case .ip: address.countingKey
    case .network: address.networkKey
    case .country: identifier?.attributes["country"].map { Array($0.utf8) }
    case .prefix:
      identifier?.kind == .phone ? identifier.map { Array($0.value.filter(\.isNumber).prefix(7).utf8) } : nil
    case .device: device
    case .flow: flow.bytes
    case .challenge: challenge?.mac
    case .provider: Array(provider.rawValue.utf8)
    case .global: []
    }
  }
}

/// The limits that a step meets.
struct StepLimits: Sendable {
  var send: [ResolvedLimit]
  var verify: [ResolvedLimit]
  var begin: [ResolvedLimit]
  var timer: ResendTimer

  /// What `send` and `verify` of a policy are told of.
  var all: [ResolvedLimit] { send + verify + begin }
}

extension ProviderPolicy {
  /// All limits of a step with their numbers settled.
  /// - Throws: `PolicyFault` where a `vary` function fails.
  func stepLimits(
    for subject: StepSubject, expiredAt: Timestamp?, keys: KeyRing, number: (Varying<Int>) throws(PolicyFault) -> Int,
    duration: (Varying<Duration>) throws(PolicyFault) -> Duration
  ) throws(PolicyFault) -> StepLimits {
    var intervals: [Duration] = []
    if subject.identifier != nil { for interval in resendAfter { intervals.append(try duration(interval)) } }
    return StepLimits(
      send: try resolve(.send, for: subject, keys: keys, number: number, duration: duration),
      verify: try resolve(.verify, for: subject, keys: keys, number: number, duration: duration),
      begin: try resolve(.begin, for: subject, keys: keys, number: number, duration: duration),
      timer: ResendTimer(key: subject.timerKey(by: keys), intervals: intervals, expiredAt: expiredAt))
  }
}

extension LimitFacts {
  /// What a policy is told of a limit: how far it is used, and until when it is locked now.
  init(_ limit: ResolvedLimit, _ state: CounterState, at now: Timestamp) {
    self.init(
      name: limit.name, used: state.used, max: limit.max, lockedUntil: state.isLocked(at: now) ? state.lockedUntil : nil
    )
  }
}

extension StepSubject {
  /// The resend timer's row: it belongs to provider and identifier, whatever the flow; a device that has passed before
  /// has its own.
  fileprivate func timerKey(by keys: KeyRing) -> [UInt8] {
    keys.counterKey(
      [
        Array("resend".utf8), Array(provider.rawValue.utf8), Array((identifier?.kind.rawValue ?? "").utf8),
        Array((identifier?.value ?? "").utf8),
      ]
        + (ownDevice.map { [$0] } ?? []))
  }
}

extension ProviderPolicy {
  /// The limits of an action with their numbers settled, those left out whose key does not exist here.
  /// - Throws: `PolicyFault` where a `vary` function fails.
  func resolve(
    _ action: LimitAction, for subject: StepSubject, keys: KeyRing, number: (Varying<Int>) throws(PolicyFault) -> Int,
    duration: (Varying<Duration>) throws(PolicyFault) -> Duration
  ) throws(PolicyFault) -> [ResolvedLimit] {
    var resolved: [ResolvedLimit] = []
    for limit in limits where limit.action == action {
      // Attack: a flood that fills a ceiling turns everybody away. Devices that have passed for the account are neither
      // counted nor refused by it.
      if limit.key.isCeiling, subject.isTrusted, action == .send || action == .begin { continue }
      guard let value = subject.value(of: limit.key) else { continue }
      // A global limit counts over all providers, the others over their own.
      let scope = limit.key == .global ? "" : provider.rawValue
      var counted = [Array(scope.utf8), Array(limit.name.utf8), Array(limit.key.rawValue.utf8), value]
      // Attack: strangers who lock the owner out. What they use up is not the owner's, nor the owner's theirs.
      //
      // Attack: messages to a number of the attacker's own without end. Each code that arrives makes another trusted
      // device, so sends of all trusted devices share one counter.
      if limit.key.isPersonal, let own = subject.ownDevice {
        counted.append(action == .send ? Array("trusted devices".utf8) : own)
      }
      let counter = keys.counterKey(counted)
      var lock: [Duration] = []
      for length in limit.lock { lock.append(try duration(length)) }
      var window: Duration?
      if let varying = limit.window { window = try duration(varying) }
      resolved.append(
        ResolvedLimit(
          provider: provider, name: limit.name, key: limit.key, counter: counter, max: try number(limit.max),
          window: window, counts: limit.counts,
          lock: lock, disables: limit.disables))
    }
    return resolved
  }

  /// Whether any number of its limits or timers is chosen by a function.
  var hasVaryingNumbers: Bool {
    limits.contains { $0.max.varies || ($0.window?.varies ?? false) || $0.lock.contains(where: \.varies) }
      || resendAfter.contains(where: \.varies)
  }
}

extension Varying {
  /// The value where it is fixed.
  var fixedValue: Value? { if case .fixed(let value) = self { value } else { nil } }
  var varies: Bool { fixedValue == nil }
  /// What chooses it, where something does.
  package var function: FunctionName? { if case .varying(_, _, let function) = self { function } else { nil } }
}
