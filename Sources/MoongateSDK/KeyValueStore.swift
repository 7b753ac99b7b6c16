/// A small key-value store that the core grants each provider: for nonces, replay protection, pending approvals and
/// cached answers of a vendor.
///
/// The keys belong to the provider alone: no other provider can read, guess or overwrite them. All gateways of an
/// installation share the entries, and a restart keeps them. Every entry expires. Values are sealed at rest; keys are
/// stored as keyed hashes.
///
/// Secrets of a person belong in the account's record and the state of a step belongs in `state`, not here.
public protocol KeyValueStore: Sendable {
  /// Reads a value.
  /// - Returns: nil if there is no entry, or if it has expired.
  func value(for key: String) async throws(KeyValueFault) -> [UInt8]?

  /// Writes a value, in place of the one that the key has.
  /// - Parameter lifetime: `KeyValueLimits.lifetime`, from now on.
  func set(_ value: [UInt8], for key: String, expiresIn lifetime: Duration) async throws(KeyValueFault)

  /// Writes a value if the key has none. Of several calls at once, on whichever gateways, one writes: a nonce is new
  /// exactly once.
  /// - Returns: whether the value was written.
  func setOnce(_ value: [UInt8], for key: String, expiresIn lifetime: Duration) async throws(KeyValueFault) -> Bool

  /// Reads a value and removes it, in one step. Of several calls at once, on whichever gateways, one gets the value.
  /// - Returns: nil if there is no entry, or if it has expired.
  func take(_ key: String) async throws(KeyValueFault) -> [UInt8]?

  /// Removes an entry. Does nothing if there is none.
  func remove(_ key: String) async throws(KeyValueFault)
}

/// The bounds of the key-value store, for each provider.
public enum KeyValueLimits {
  /// Bytes of a key in UTF-8; at least one.
  public static let longestKey = 256
  /// Bytes of a value.
  public static let longestValue = 16_384
  /// How long an entry may live.
  public static let lifetime: ClosedRange<Duration> = .seconds(1)...Duration.seconds(30 * 86_400)
  /// Entries of one provider. A new key beyond them is refused with `KeyValueFault.full`; nothing that is stored gives
  /// way to it.
  ///
  /// Attack: steps that are begun without end, each of which stores something, until the disk is full or other people's
  /// nonces are pushed out.
  public static let entries = 20_000

  /// Checks what a provider wants to read or write.
  /// - Throws: which bound it exceeds.
  public static func check(key: String, value: [UInt8]? = nil, lifetime: Duration? = nil) throws(KeyValueFault) {
    guard (1...longestKey).contains(key.utf8.count) else { throw .invalidKey(bytes: key.utf8.count) }
    if let value, value.count > longestValue { throw .valueTooLong(bytes: value.count) }
    if let lifetime, !self.lifetime.contains(lifetime) { throw .invalidLifetime(lifetime) }
  }
}

/// Why the key-value store did not do what it was asked. A provider that lets it through answers a fault: 503,
/// refunded, never a pass.
public enum KeyValueFault: Error, Sendable, Equatable, CustomStringConvertible {
  /// The store does not answer. The reason is in the gateway's log.
  case unavailable
  /// The provider has as many entries as it may have.
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
    case .leaseLost: "the maintenance run has lost its lease: its time is over"
    case .invalidKey(let bytes): "a key must have 1 to \(KeyValueLimits.longestKey) bytes, this one has \(bytes)"
    case .valueTooLong(let bytes): "a value may have \(KeyValueLimits.longestValue) bytes, this one has \(bytes)"
    case .invalidLifetime(let lifetime): "an entry must expire in 1 second to 30 days, not in \(lifetime)"
    }
  }
}

/// The store of a call that has none, such as in a provider's own unit tests: it never answers.
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
