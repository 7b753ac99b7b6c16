import MoongateSDK

/// A provider's key-value entry in its sealed form.
///
/// The row's key is a keyed hash, made with the oldest key of the ring as for counters, so that a copy of the database
/// reveals neither keys nor values. The sealed part also contains the provider's key: when the oldest key is retired,
/// the rows are moved to hashes of the next one.
struct SealedProviderValue {
  let key: String
  let value: [UInt8]

  /// The row key of the entry.
  static func place(of key: String, for provider: ProviderName, by keys: KeyRing) -> ProviderValuePlace {
    let parts = ["provider value", provider.rawValue, key].map { Array($0.utf8) }
    return ProviderValuePlace(provider: provider, key: keys.counterKey(parts))
  }

  init(key: String, value: [UInt8]) {
    self.key = key
    self.value = value
  }

  /// Opens a row.
  /// - Throws: if it was changed, moved to another place, or sealed under a key that is not in the ring.
  init(opening sealed: [UInt8], at place: ProviderValuePlace, by keys: KeyRing) throws {
    try self.init(plain: keys.open(sealed, for: Self.owner(place)))
  }

  /// Parses the length of the key in two bytes, the key and the value.
  private init(plain: [UInt8]) throws {
    guard plain.count >= 2 else { throw KeyRingError.notOurs }
    let length = Int(plain[0]) << 8 | Int(plain[1])
    guard plain.count >= 2 + length, let key = String(validating: plain[2..<2 + length], as: UTF8.self) else {
      throw KeyRingError.notOurs
    }
    self.init(key: key, value: Array(plain[(2 + length)...]))
  }

  /// Seals the entry for its place.
  func sealed(for place: ProviderValuePlace, by keys: KeyRing) throws -> [UInt8] {
    let name = Array(key.utf8)
    return try keys.seal([UInt8(name.count >> 8), UInt8(name.count & 0xff)] + name + value, for: Self.owner(place))
  }

  /// Attack: someone with write access to the database puts the approval of one sign-in in the place of another's.
  private static func owner(_ place: ProviderValuePlace) -> String {
    "value \(place.provider) \(Base64URL.encode(place.key))"
  }
}

extension SealedProviderValue {
  private static let page = 200

  /// Moves all entries to a ring without a certain key. Entries sealed with that key are sealed again, and entries
  /// whose place depends on it are moved. Entries that change meanwhile are skipped. Entries that no key opens are left
  /// to expire.
  static func move(
    in store: any ProviderValueStore, from ring: KeyRing, to left: KeyRing, at now: Timestamp
  ) async throws(StoreFault) {
    var last: ProviderValuePlace?
    while true {
      let values = try await store.providerValues(after: last, limit: page)
      for value in values {
        guard let opened = try? Self(opening: value.sealed, at: value.place, by: ring) else { continue }
        let place = place(of: opened.key, for: value.place.provider, by: left)
        if place == value.place, (try? Self(opening: value.sealed, at: place, by: left)) != nil { continue }
        guard let sealed = try? opened.sealed(for: place, by: left) else {
          throw StoreFault("a value of \(place.provider) could not be sealed")
        }
        try await store.replaceProviderValue(
          value, by: ProviderValue(place: place, sealed: sealed, expiresAt: value.expiresAt), at: now)
      }
      guard values.count == page, let end = values.last?.place else { return }
      last = end
    }
  }
}
