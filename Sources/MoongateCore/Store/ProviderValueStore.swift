import MoongateSDK

/// Stores the entries of the providers' key-value stores (`KeyValueStore`). The core seals each entry, so the store
/// sees neither keys nor values.
package protocol ProviderValueStore: Sendable {
  /// The sealed value at a place; nil if none exists or it has expired.
  func providerValue(at place: ProviderValuePlace, at now: Timestamp) async throws(StoreFault) -> [UInt8]?
  /// Stores a value if the rule allows it.
  func putProviderValue(_ value: ProviderValue, _ rule: ProviderValueRule, at now: Timestamp) async throws(StoreFault)
    -> ProviderValueOutcome
  /// Removes and returns the value at a place. Only one of several concurrent calls gets it.
  /// - Parameter lease: a lease that must still be held.
  func takeProviderValue(
    at place: ProviderValuePlace, under lease: Lease?, at now: Timestamp
  ) async throws(StoreFault) -> TakenProviderValue
  /// All values, including expired ones, in the order of their places.
  /// - Parameters:
  ///   - place: the last place of the previous page; nil for the first page.
  ///   - limit: the maximum number, 1 or more.
  func providerValues(after place: ProviderValuePlace?, limit: Int) async throws(StoreFault) -> [ProviderValue]
  /// Replaces a value by another one, perhaps at another place. Has no effect if the old value has changed in the
  /// meantime.
  func replaceProviderValue(_ old: ProviderValue, by new: ProviderValue, at now: Timestamp) async throws(StoreFault)
}

/// The key of a provider's value.
package struct ProviderValuePlace: Sendable, Hashable {
  package let provider: ProviderName
  /// A keyed hash of the provider's name and its key.
  package let key: [UInt8]

  package init(provider: ProviderName, key: [UInt8]) {
    self.provider = provider
    self.key = key
  }
}

/// A stored value.
package struct ProviderValue: Sendable, Equatable {
  package let place: ProviderValuePlace
  package let sealed: [UInt8]
  package let expiresAt: Timestamp

  package init(place: ProviderValuePlace, sealed: [UInt8], expiresAt: Timestamp) {
    self.place = place
    self.sealed = sealed
    self.expiresAt = expiresAt
  }
}

/// The conditions under which a value is stored.
package struct ProviderValueRule: Sendable {
  /// Whether an existing unexpired value is kept instead.
  package let isOnce: Bool
  /// The maximum number of unexpired values of the provider. A value that replaces another one is always stored.
  package let most: Int
  /// A lease that must still be held.
  package let lease: Lease?

  package init(isOnce: Bool = false, most: Int = KeyValueLimits.entries, lease: Lease? = nil) {
    self.isOnce = isOnce
    self.most = most
    self.lease = lease
  }
}

/// The result of storing a value.
package enum ProviderValueOutcome: Sendable, Equatable {
  case stored
  /// Another value exists, and the rule keeps it.
  case taken
  /// The provider has the maximum number of values.
  case full
  /// The lease has expired or another gateway holds it.
  case leaseLost
}

/// The result of taking a value.
package enum TakenProviderValue: Sendable, Equatable {
  /// The sealed value.
  case value([UInt8])
  /// There was no unexpired value.
  case nothing
  /// The lease has expired or another gateway holds it.
  case leaseLost
}
