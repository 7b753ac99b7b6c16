import Logging
import MoongateSDK

/// A provider's key-value store: sealed entries in the store that all gateways share. A part of the gateway that has to
/// find something at another gateway uses one too.
package struct ProviderKeyValues: KeyValueStore {
  /// The name under which the App API has its entries. No provider can have it.
  package static let appAPI: ProviderName = "app_api"

  private let provider: ProviderName
  private let store: any ProviderValueStore
  private let keys: KeyRing
  private let clock: any GatewayClock
  private let logger: Logger
  /// The lease under which all operations run; nil for steps, which need none.
  private let lease: Lease?
  private let most: Int

  /// More than five parameters: one for each service.
  /// - Parameter most: the maximum number of entries.
  package init(
    of provider: ProviderName, in store: any ProviderValueStore, keys: KeyRing, clock: any GatewayClock, logger: Logger,
    under lease: Lease? = nil, most: Int = KeyValueLimits.entries
  ) {
    self.provider = provider
    self.store = store
    self.keys = keys
    self.clock = clock
    self.logger = logger
    self.lease = lease
    self.most = most
  }

  package func value(for key: String) async throws(KeyValueFault) -> [UInt8]? {
    let place = try place(of: key)
    let now = clock.now()
    return try open(
      try await asking { [store] () async throws(StoreFault) in try await store.providerValue(at: place, at: now) },
      at: place)
  }

  package func set(_ value: [UInt8], for key: String, expiresIn lifetime: Duration) async throws(KeyValueFault) {
    _ = try await put(value, for: key, expiresIn: lifetime, once: false)
  }

  package func setOnce(_ value: [UInt8], for key: String, expiresIn lifetime: Duration) async throws(KeyValueFault)
    -> Bool
  {
    try await put(value, for: key, expiresIn: lifetime, once: true)
  }

  package func take(_ key: String) async throws(KeyValueFault) -> [UInt8]? {
    let place = try place(of: key)
    return try open(try await take(at: place), at: place)
  }

  package func remove(_ key: String) async throws(KeyValueFault) { _ = try await take(at: try place(of: key)) }

  private func take(at place: ProviderValuePlace) async throws(KeyValueFault) -> [UInt8]? {
    let now = clock.now()
    let taken = try await asking { [store, lease] () async throws(StoreFault) in
      try await store.takeProviderValue(at: place, under: lease, at: now)
    }
    switch taken {
    case .value(let sealed): return sealed
    case .nothing: return nil
    case .leaseLost: throw .leaseLost
    }
  }

  private func place(of key: String) throws(KeyValueFault) -> ProviderValuePlace {
    try KeyValueLimits.check(key: key)
    return SealedProviderValue.place(of: key, for: provider, by: keys)
  }

  private func put(_ value: [UInt8], for key: String, expiresIn lifetime: Duration, once: Bool)
    async throws(KeyValueFault) -> Bool
  {
    try KeyValueLimits.check(key: key, value: value, lifetime: lifetime)
    let place = SealedProviderValue.place(of: key, for: provider, by: keys)
    let now = clock.now()
    let sealed: [UInt8]
    do {
      sealed = try SealedProviderValue(key: key, value: value).sealed(for: place, by: keys)
    } catch {
      throw unavailable("a value could not be sealed")
    }
    let entry = ProviderValue(place: place, sealed: sealed, expiresAt: now + lifetime)
    let rule = ProviderValueRule(isOnce: once, most: most, lease: lease)
    let outcome = try await asking { [store] () async throws(StoreFault) in
      try await store.putProviderValue(entry, rule, at: now)
    }
    switch outcome {
    case .stored: return true
    case .taken: return false
    case .full: throw .full
    case .leaseLost: throw .leaseLost
    }
  }

  private func open(_ sealed: [UInt8]?, at place: ProviderValuePlace) throws(KeyValueFault) -> [UInt8]? {
    guard let sealed else { return nil }
    do {
      return try SealedProviderValue(opening: sealed, at: place, by: keys).value
    } catch {
      throw unavailable("a value cannot be opened: it was changed, or sealed under another master key")
    }
  }

  private func asking<Answer>(_ body: () async throws(StoreFault) -> Answer) async throws(KeyValueFault) -> Answer {
    do { return try await body() } catch { throw unavailable(error.description) }
  }

  private func unavailable(_ reason: String) -> KeyValueFault {
    logger.error(
      "the key-value store of a provider did not answer", metadata: ["provider": "\(provider)", "fault": "\(reason)"])
    return .unavailable
  }
}
