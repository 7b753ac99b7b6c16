import MoongateSDK

/// The rows behind the key-value stores that providers are granted (`KeyValueStore`). Each is sealed by the core; the
/// store knows neither key nor value.
package protocol ProviderValueStore: Sendable {
  /// The sealed value at a place; nil where there is none that is still alive.
  func providerValue(at place: ProviderValuePlace, at now: Timestamp) async throws(StoreFault) -> [UInt8]?
  /// Stores a value, if the rule allows it.
  func putProviderValue(_ value: ProviderValue, _ rule: ProviderValueRule, at now: Timestamp) async throws(StoreFault)
    -> ProviderValueOutcome
  /// Removes the value at a place. Of several calls at once one gets it.
  /// - Parameter lease: which must still be held.
  func takeProviderValue(
    at place: ProviderValuePlace, under lease: Lease?, at now: Timestamp
  ) async throws(StoreFault) -> TakenProviderValue
  /// All values, alive or not, in the order of their places.
  /// - Parameters:
  ///   - place: the one before the first of them; nil: from the beginning.
  ///   - limit: at most so many, 1 or more.
  func providerValues(after place: ProviderValuePlace?, limit: Int) async throws(StoreFault) -> [ProviderValue]
  /// Puts a value in place of another one, which may stand elsewhere. Does nothing if the other one has changed
  /// meanwhile.
  func replaceProviderValue(_ old: ProviderValue, by new: ProviderValue, at now: Timestamp) async throws(StoreFault)
}

/// Where a value of a provider stands.
package struct ProviderValuePlace: Sendable, Hashable {
  package let provider: ProviderName
  /// A keyed hash of the provider's name and its key.
  package let key: [UInt8]

  package init(provider: ProviderName, key: [UInt8]) {
    self.provider = provider
    self.key = key
  }
}

/// A value as it is stored.
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

/// Under which conditions a value is stored.
package struct ProviderValueRule: Sendable {
  /// Whether it gives way to a value that is still alive.
  package let isOnce: Bool
  /// How many values of its provider may be alive. One that takes the place of another is stored even so.
  package let most: Int
  /// The lease that must still be held.
  package let lease: Lease?

  package init(isOnce: Bool = false, most: Int = KeyValueLimits.entries, lease: Lease? = nil) {
    self.isOnce = isOnce
    self.most = most
    self.lease = lease
  }
}

/// What came of storing a value.
package enum ProviderValueOutcome: Sendable, Equatable {
  case stored
  /// Another value is there, and the rule protects it.
  case taken
  /// The provider has as many values as it may have.
  case full
  /// The lease is somebody else's, or over.
  case leaseLost
}

/// What came of taking a value.
package enum TakenProviderValue: Sendable, Equatable {
  /// Sealed.
  case value([UInt8])
  /// There was none that was still alive.
  case nothing
  /// The lease is somebody else's, or over.
  case leaseLost
}
