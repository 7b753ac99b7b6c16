/// A small key-value store that the core provides to each provider, for nonces, replay protection, pending approvals
/// and cached answers of a vendor.
///
/// The keys belong to the provider alone: no other provider can read, guess or overwrite them. All gateways of an
/// installation share the entries, and they survive a restart. Every entry expires. Values are sealed at rest; keys are
/// stored as keyed hashes.
///
/// Keep users' secrets in the account's record and the state of a step in `state`, not here.
public protocol KeyValueStore: Sendable {
  /// Reads a value.
  /// - Returns: nil if there is no entry, or if it has expired.
  func value(for key: String) async throws(KeyValueFault) -> [UInt8]?

  /// Writes a value, replacing the key's previous one.
  /// - Parameter lifetime: the time from now, within `KeyValueLimits.lifetime`.
  func set(_ value: [UInt8], for key: String, expiresIn lifetime: Duration) async throws(KeyValueFault)

  /// Writes a value if the key has none. Of several concurrent calls, on any gateways, only one writes: a nonce is new
  /// exactly once.
  /// - Returns: whether the value was written.
  func setOnce(_ value: [UInt8], for key: String, expiresIn lifetime: Duration) async throws(KeyValueFault) -> Bool

  /// Reads and removes a value atomically. Of several concurrent calls, on any gateways, only one gets the value.
  /// - Returns: nil if there is no entry, or if it has expired.
  func take(_ key: String) async throws(KeyValueFault) -> [UInt8]?

  /// Removes an entry. Does nothing if none exists.
  func remove(_ key: String) async throws(KeyValueFault)
}

/// The limits of the key-value store, per provider.
public enum KeyValueLimits {
  /// The maximum length of a key in UTF-8 bytes. The minimum is 1.
  public static let longestKey = 256
  /// The maximum size of a value, in bytes.
  public static let longestValue = 16_384
  /// The allowed lifetime of an entry.
  public static let lifetime: ClosedRange<Duration> = .seconds(1)...Duration.seconds(30 * 86_400)
  /// The maximum number of entries of one provider. Further keys are refused with `KeyValueFault.full`; stored entries
  /// are never evicted.
  ///
  /// Attack: steps that are begun without end, each of which stores something, until the disk is full or other users'
  /// nonces are evicted.
  public static let entries = 20_000

  /// Checks the arguments of a read or write.
  /// - Throws: the limit that is exceeded.
  public static func check(key: String, value: [UInt8]? = nil, lifetime: Duration? = nil) throws(KeyValueFault) {
    guard (1...longestKey).contains(key.utf8.count) else { throw .invalidKey(bytes: key.utf8.count) }
    if let value, value.count > longestValue { throw .valueTooLong(bytes: value.count) }
    if let lifetime, !self.lifetime.contains(lifetime) { throw .invalidLifetime(lifetime) }
  }
}

/// Why an operation of the key-value store failed. If a provider throws it on, the step ends with a fault: 503,
/// refunded, never passed.
public enum KeyValueFault: Error, Sendable, Equatable, CustomStringConvertible {
  /// The store does not respond. The reason is in the gateway's log.
  case unavailable
  /// The provider has the maximum number of entries.
  case full
  /// The maintenance run has lost its lease: another gateway runs it now, or its time is over.
  case leaseLost
  case invalidKey(bytes: Int)
  case valueTooLong(bytes: Int)
  case invalidLifetime(Duration)

  public var description: String {
    switch self {
    case .unavailable: "the key-value store does not answer"
    case .full:
      "the key-value store has \(KeyValueLimits.entries) entries of this provider: store less, or let entries expire sooner"
    case .leaseLost: "the maintenance run has lost its lease: its time limit has passed"
    case .invalidKey(let bytes): "a key must have 1 to \(KeyValueLimits.longestKey) bytes, this one has \(bytes)"
    case .valueTooLong(let bytes): "a value may have \(KeyValueLimits.longestValue) bytes, this one has \(bytes)"
    case .invalidLifetime(let lifetime): "an entry must expire in 1 second to 30 days, not in \(lifetime)"
    }
  }
}

/// A store for calls that have none, such as in a provider's own unit tests. Every operation throws `unavailable`.
public struct UnavailableKeyValueStore: KeyValueStore {
  public init() {}

  public func value(for key: String) async throws(KeyValueFault) -> [UInt8]? { throw .unavailable }
  public func set(_ value: [UInt8], for key: String, expiresIn lifetime: Duration) async throws(KeyValueFault) {
    throw .unavailable
  }
  public func setOnce(_ value: [UInt8], for key: String, expiresIn lifetime: Duration) async throws(KeyValueFault)
    -> Bool
  { throw .unavailable }
  public func take(_ key: String) async throws(KeyValueFault) -> [UInt8]? { throw .unavailable }
  public func remove(_ key: String) async throws(KeyValueFault) { throw .unavailable }
}
