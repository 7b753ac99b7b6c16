import MoongateSDK

/// A number or duration that is fixed, or that a function chooses within bounds.
package enum Varying<Value: Sendable & Comparable & Hashable>: Sendable, Hashable {
  case fixed(Value)
  /// `vary(lowest, highest, function)`. The function's result is clamped.
  case varying(lowest: Value, highest: Value, FunctionName)
}

/// The events that a limit counts.
package enum LimitAction: String, Sendable, Codable, CaseIterable {
  case send
  case verify
  /// Every `begin` of a provider, with any result.
  case begin
  /// Every new account, counted before the work for it is done.
  case register

  /// Whether the event's outcome is only known later. An event without an outcome is counted when it happens and stays
  /// counted.
  package var hasOutcome: Bool { self == .send || self == .verify }
}

/// The key that a limit counts by.
package enum LimitKey: String, Sendable, Codable, CaseIterable {
  case phone, email, identifier, account
  /// The client address; for IPv6, its /64.
  case ip
  /// The /24 (IPv4) or /48 (IPv6) of the client address.
  case network
  /// The country of the client address (`geo`).
  case clientCountry = "client_country"
  /// The number of the autonomous system of the client address (`geo`).
  case asn
  /// The country of a phone number.
  case country
  /// The first seven digits of a phone number.
  case prefix
  case device, flow, challenge, provider, global

  /// The kind of identifier that the key counts by; nil if it counts by something else, or by any kind.
  package var kind: IdentifierKind? {
    switch self {
    case .phone: .phone
    case .email: .email
    default: nil
    }
  }

  /// Whether the key identifies the user, so that reaching the limit concerns only that user (`send_limit`, not
  /// `rate_limited`).
  package var isPersonal: Bool {
    switch self {
    case .phone, .email, .identifier, .account: true
    case .ip, .network, .clientCountry, .asn, .country, .prefix, .device, .flow, .challenge, .provider, .global: false
    }
  }

  /// Whether the key counts many users together, so that a flood could fill its limit for all of them.
  package var isCeiling: Bool {
    switch self {
    case .network, .clientCountry, .asn, .country, .prefix, .provider, .global: true
    case .phone, .email, .identifier, .account, .ip, .device, .flow, .challenge: false
    }
  }
}

/// The outcomes that stay counted.
package enum LimitCounts: String, Sendable, Codable, CaseIterable {
  case all
  case failures
  case consecutiveFailures = "consecutive_failures"
}

/// One limit of a policy.
package struct Limit: Sendable, Hashable {
  /// The operator's name for the limit: `send`, `verify`, `hard`, …
  package let name: String
  package let action: LimitAction
  package let key: LimitKey
  /// At least 1.
  package let max: Varying<Int>
  /// nil only for consecutive failures.
  package let window: Varying<Duration>?
  package let counts: LimitCounts
  /// The lengths of the first lock, the second, and so on, once the limit is full of failures; the last one repeats.
  /// Empty: no locks.
  package let lock: [Varying<Duration>]
  /// Whether a full limit disables the credential or identifier until an operator re-enables it.
  package let disables: Bool
  package let location: SourceLocation

  /// More than five parameters: one for each field.
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
