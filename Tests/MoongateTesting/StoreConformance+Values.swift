import MoongateCore
import MoongateSDK
import Testing

// The providers' key-value stores.

extension StoreConformance {
  static let values: [StoreConformance] = [
    StoreConformance("a provider's value exists until it expires") { bench async throws in
      #expect(try await bench.value("a") == nil)
      #expect(try await bench.put("a", [1, 2]) == .stored)
      #expect(try await bench.value("a") == [1, 2])
      #expect(try await bench.put("a", []) == .stored, "it replaces the first")
      bench.clock.advance(by: .milliseconds(9_999))
      #expect(try await bench.value("a") == [])
      bench.clock.advance(by: .milliseconds(1))
      #expect(try await bench.value("a") == nil)
      #expect(try await bench.take("a") == nil)
      #expect(try await bench.put("a", [3], once: true) == .stored, "an expired value does not block a new one")
    },
    // Attack: someone enters the handle of another provider's pending approval.
    StoreConformance("a value belongs to one provider") { bench async throws in
      _ = try await bench.put("a", [1])
      #expect(try await bench.value("a", of: "other") == nil)
      #expect(try await bench.take("a", of: "other") == nil)
      #expect(try await bench.put("a", [2], of: "other", once: true) == .stored)
      #expect(try await bench.value("a") == [1])
    },
    // Attack: a nonce is replayed at another gateway at the same moment.
    StoreConformance("of fifty concurrent first writes of a value, one succeeds") { bench async throws in
      let stored = try await withThrowingTaskGroup(of: ProviderValueOutcome.self) { group in
        for number in 0..<50 { group.addTask { try await bench.put("nonce", [UInt8(number)], once: true) } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(stored.count { $0 == .stored } == 1 && stored.count { $0 == .taken } == 49)
    },
    StoreConformance("of fifty concurrent takes of a value, one gets it") { bench async throws in
      _ = try await bench.put("approval", [7])
      let taken = try await withThrowingTaskGroup(of: [UInt8]?.self) { group in
        for _ in 0..<50 { group.addTask { try await bench.take("approval") } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(taken.compactMap(\.self) == [[7]])
    },
    // Attack: steps that are begun without end fill the disk, or evict entries that protect others from replays.
    StoreConformance("a provider at its limit stores no new key, and keeps its values") { bench async throws in
      for number in 0..<3 { #expect(try await bench.put("k\(number)", [1], most: 3) == .stored) }
      #expect(try await bench.put("k3", [1], most: 3) == .full)
      #expect(try await bench.put("k3", [1], once: true, most: 3) == .full)
      #expect(try await bench.put("k0", [2], most: 3) == .stored, "a replacement needs no room")
      #expect(try await bench.put("k0", [2], once: true, most: 3) == .taken)
      #expect(try await bench.put("k3", [1], of: "other", most: 3) == .stored)
      bench.clock.advance(by: .seconds(10))
      #expect(try await bench.put("k3", [1], most: 3) == .stored, "an expired value takes no room")
    },
    StoreConformance("expired values are pruned, and values are listed in order") { bench async throws in
      _ = try await bench.put("a", [1])
      _ = try await bench.put("b", [2], of: "other")
      bench.clock.advance(by: .seconds(5))
      _ = try await bench.put("c", [3])
      let all = try await bench.store.providerValues(after: nil, limit: 10)
      #expect(
        Set(all.map(\.sealed)) == [[1], [2], [3]]
          && all.map(\.place.provider.rawValue) == ["other", "phone_otp", "phone_otp"])
      #expect(try await bench.store.providerValues(after: all[0].place, limit: 1) == [all[1]])
      bench.clock.advance(by: .seconds(5))
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.store.providerValues(after: nil, limit: 10).map(\.sealed) == [[3]])
    },
    StoreConformance("a value is replaced only if it is unchanged") { bench async throws in
      _ = try await bench.put("a", [1])
      let old = try #require(try await bench.store.providerValues(after: nil, limit: 1).first)
      let new = ProviderValue(place: bench.place("z"), sealed: [9], expiresAt: old.expiresAt)
      _ = try await bench.put("a", [2])
      try await bench.store.replaceProviderValue(old, by: new, at: bench.now)
      #expect(try await bench.value("a") == [2])
      #expect(try await bench.value("z") == nil)
      let current = try #require(try await bench.store.providerValues(after: nil, limit: 1).first)
      try await bench.store.replaceProviderValue(current, by: new, at: bench.now)
      #expect(try await bench.value("a") == nil)
      #expect(try await bench.value("z") == [9])
      let resealed = ProviderValue(place: new.place, sealed: [8], expiresAt: new.expiresAt)
      try await bench.store.replaceProviderValue(new, by: resealed, at: bench.now)
      #expect(try await bench.value("z") == [8], "in the same place too")
    },
  ]
}

extension StoreBench {
  func place(_ key: String, of provider: ProviderName = "phone_otp") -> ProviderValuePlace {
    ProviderValuePlace(provider: provider, key: Array(TokenHash(of: key.utf8).bytes.prefix(20)))
  }

  /// More than five parameters: the members of a value that tests vary, with defaults.
  func put(
    _ key: String, _ sealed: [UInt8], of provider: ProviderName = "phone_otp", once: Bool = false, most: Int = 100,
    under lease: Lease? = nil
  ) async throws -> ProviderValueOutcome {
    try await store.putProviderValue(
      ProviderValue(place: place(key, of: provider), sealed: sealed, expiresAt: now + .seconds(10)),
      ProviderValueRule(isOnce: once, most: most, lease: lease),
      at: now)
  }

  func value(_ key: String, of provider: ProviderName = "phone_otp") async throws -> [UInt8]? {
    try await store.providerValue(at: place(key, of: provider), at: now)
  }

  func take(_ key: String, of provider: ProviderName = "phone_otp") async throws -> [UInt8]? {
    switch try await store.takeProviderValue(at: place(key, of: provider), under: nil, at: now) {
    case .value(let sealed): sealed
    case .nothing, .leaseLost: nil
    }
  }
}
