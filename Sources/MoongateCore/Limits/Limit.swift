import MoongateSDK

/// A number or duration that an operator may fix or let a function choose within bounds.
package enum Varying<Value: Sendable & Comparable & Hashable>: Sendable, Hashable {
  case fixed(Value)
  /// `vary(lowest, highest, function)`; the function's result is clamped.
  case varying(lowest: Value, highest: Value, FunctionName)
}

/// What a limit counts.
package enum LimitAction: String, Sendable, Codable, CaseIterable {
  case send
  case verify
  /// Every `begin` of a provider, whatever comes of it.
  case begin
  /// Every account that is made, counted before the work for it is done.
  case register

  /// Whether an event has an outcome that is known only later. An event without one counts when it happens, and stays
  /// counted.
  package var hasOutcome: Bool { self == .send || self == .verify }
}

/// By what a limit counts.
package enum LimitKey: String, Sendable, Codable, CaseIterable {
  case phone, email, identifier, account
  /// The address; an IPv6 one by its /64.
  case ip
  /// /24 or /48.
  case network
  case country
  /// The first seven digits of a phone number.
  case prefix
  case device, flow, challenge, provider, global

  /// Whether the key is the person who signs in, so that a full limit is theirs (`send_limit`, not `rate_limited`).
  package var isPersonal: Bool {
    switch self {
    case .phone, .email, .identifier, .account: true
    default: false
    }
  }

  /// Whether the key counts many people together, so that a flood could fill its limit for all of them.
  package var isCeiling: Bool {
    switch self {
    case .network, .country, .prefix, .provider, .global: true
    default: false
    }
  }
}

/// Which outcomes stay counted.
package enum LimitCounts: String, Sendable, Codable, CaseIterable {
  case all
  case failures
  case consecutiveFailures = "consecutive_failures"
}

/// One limit of a policy.
package struct Limit: Sendable, Hashable {
  /// The operator's name for it: `send`, `verify`, `hard`, …
  package let name: String
  package let action: LimitAction
  package let key: LimitKey
  /// At least 1.
  package let max: Varying<Int>
  /// nil only with consecutive failures.
  package let window: Varying<Duration>?
  package let counts: LimitCounts
  /// How long to refuse once it is full of failures: the first lock, the second, …; the last repeats. Empty: none.
  package let lock: [Varying<Duration>]
  /// Whether being full turns the credential or identifier off until an operator turns it on.
  package let disables: Bool
  package let location: SourceLocation

  package init(
    name: String, action: LimitAction, key: LimitKey, max: Varying<Int>, window: Varying<Duration>?,
    counts: LimitCounts,
    lock: [Varying<Duration>], disables: Bool, location: SourceLocation
  ) {
    self.name = name
    self.action = action
    self.key = key
    self.max = max
    self.window = window
    self.counts = counts
    self.lock = lock
    self.disables = disables
    self.location = location
  }
}
