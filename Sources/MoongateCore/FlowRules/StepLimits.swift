import MoongateSDK

/// The subject that a step is counted against: the values of the limits' keys.
struct StepSubject: Sendable {
  let provider: ProviderName
  let identifier: Identifier?
  /// The ID of the account that the step would open, or is for.
  let account: String?
  /// Whether an unknown identifier must be indistinguishable from a known one.
  let conceals: Bool
  let flow: TokenHash
  let challenge: Challenge?
  let address: ClientAddress
  /// Where the address is.
  var place = ClientPlace()
  /// The ID of the device, if it has a valid device token.
  var device: [UInt8]?
  /// Whether accounts claim the identifier without having verified it. They share one counter.
  var isClaimed = false
  /// Whether this device has passed this provider for the account before. It then has separate counters.
  var isOwnDevice = false
  /// Whether this device has passed any provider for the account before. Limits that count many users together then do
  /// not apply to its begins and sends.
  var isTrusted = false
  /// The `client_id` of the app at whose endpoints something was wrong: counted apart from everything else.
  var app: String?

  /// A copy that also uses the device's own counters if `isOwn` is true.
  func of(ownDevice isOwn: Bool) -> StepSubject {
    var subject = self
    subject.isOwnDevice = isOwnDevice || isOwn
    return subject
  }

  /// The device, if it has separate counters here.
  var ownDevice: [UInt8]? { isOwnDevice ? device : nil }

  private var ofApp: [UInt8] { app.map { Array(" \($0)".utf8) } ?? [] }

  /// The value of the key; nil if it has none. The limit then does not apply.
  func value(of key: LimitKey) -> [UInt8]? {
    switch key {
    case .phone, .email: identifier?.kind == key.kind ? identifier.map { Array($0.value.utf8) } : nil
    case .identifier: identifier.map { Array("\($0.kind.rawValue) \($0.value)".utf8) }
    case .account:
      if let account {
        Array(account.utf8)
      } else if conceals || isClaimed, let identifier {
        // Attack: a limit per account that only applies to known users would reveal who is known; a separate one for
        // each account that claims an address would multiply the attempts at it.
        Array("nobody \(identifier.kind.rawValue) \(identifier.value)".utf8)
      } else {
        nil
      }
    case .ip: address.countingKey + ofApp
    case .network: address.networkKey + ofApp
    case .clientCountry: place.country.map { Array($0.utf8) }
    case .asn: place.asn.map { Array(String($0).utf8) }
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

/// The limits of a step.
struct StepLimits: Sendable {
  var send: [ResolvedLimit]
  var verify: [ResolvedLimit]
  var begin: [ResolvedLimit]
  var timer: ResendTimer

  /// The limits that a policy's `send` and `verify` functions see.
  var all: [ResolvedLimit] { send + verify + begin }
}

extension ProviderPolicy {
  /// All limits of a step with their numbers resolved.
  /// - Throws: `PolicyFault` if a `vary` function fails.
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
  /// The facts about a limit: how much of it is used, and when its current lock ends.
  init(_ limit: ResolvedLimit, _ state: CounterState, at now: Timestamp) {
    self.init(
      name: limit.name, used: state.used, max: limit.max, lockedUntil: state.isLocked(at: now) ? state.lockedUntil : nil
    )
  }
}

extension StepSubject {
  /// The key of the resend timer. It depends on provider and identifier, not on the flow. A device that has passed
  /// before has its own timer.
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
  /// The limits of an action with their numbers resolved. Limits whose key has no value are left out.
  /// - Throws: `PolicyFault` if a `vary` function fails.
  func resolve(
    _ action: LimitAction, for subject: StepSubject, keys: KeyRing, number: (Varying<Int>) throws(PolicyFault) -> Int,
    duration: (Varying<Duration>) throws(PolicyFault) -> Duration
  ) throws(PolicyFault) -> [ResolvedLimit] {
    var resolved: [ResolvedLimit] = []
    for limit in limits where limit.action == action {
      // Attack: a flood that fills a ceiling locks everyone out. Devices that have passed for the account are neither
      // counted nor refused by it.
      if limit.key.isCeiling, subject.isTrusted, action == .send || action == .begin { continue }
      guard let value = subject.value(of: limit.key) else { continue }
      // A global limit counts over all providers, the others over their own.
      let scope = limit.key == .global ? "" : provider.rawValue
      var counted = [Array(scope.utf8), Array(limit.name.utf8), Array(limit.key.rawValue.utf8), value]
      // Attack: attackers lock the owner out. Attempts from unknown devices and from the owner's devices are counted
      // separately.
      //
      // Attack: an unlimited number of messages to a number of the attacker's own. Each code that arrives makes another
      // trusted device, so sends of all trusted devices share one counter.
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

  /// Whether a function chooses any number of its limits or timers.
  var hasVaryingNumbers: Bool {
    limits.contains { $0.max.varies || ($0.window?.varies ?? false) || $0.lock.contains(where: \.varies) }
      || resendAfter.contains(where: \.varies)
  }
}

extension Varying {
  /// The value, if it is fixed.
  var fixedValue: Value? { if case .fixed(let value) = self { value } else { nil } }
  var varies: Bool { fixedValue == nil }
  /// The function that chooses the value, if any.
  package var function: FunctionName? { if case .varying(_, _, let function) = self { function } else { nil } }
}
