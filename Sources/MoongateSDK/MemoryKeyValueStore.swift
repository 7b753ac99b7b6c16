import Synchronization

/// An in-memory key-value store for tests of a provider. It has the same limits and semantics as the gateway's, and
/// uses the test's clock.
public final class MemoryKeyValueStore: KeyValueStore {
  private struct Entry {
    let value: [UInt8]
    let expiresAt: Int64
  }

  private let clock: StepClock
  private let entries = Mutex<[String: Entry]>([:])

  public init(clock: StepClock) { self.clock = clock }

  public func value(for key: String) async throws(KeyValueFault) -> [UInt8]? {
    try KeyValueLimits.check(key: key)
    let now = clock.now
    return entries.withLock { $0[key].flatMap { now < $0.expiresAt ? $0.value : nil } }
  }

  public func set(_ value: [UInt8], for key: String, expiresIn lifetime: Duration) async throws(KeyValueFault) {
    _ = try put(value, for: key, expiresIn: lifetime, once: false)
  }

  public func setOnce(_ value: [UInt8], for key: String, expiresIn lifetime: Duration) async throws(KeyValueFault)
    -> Bool
  {
    try put(value, for: key, expiresIn: lifetime, once: true)
  }

  public func take(_ key: String) async throws(KeyValueFault) -> [UInt8]? {
    try KeyValueLimits.check(key: key)
    let now = clock.now
    return entries.withLock { $0.removeValue(forKey: key) }.flatMap { now < $0.expiresAt ? $0.value : nil }
  }

  public func remove(_ key: String) async throws(KeyValueFault) { _ = try await take(key) }

  private func put(_ value: [UInt8], for key: String, expiresIn lifetime: Duration, once: Bool) throws(KeyValueFault)
    -> Bool
  {
    try KeyValueLimits.check(key: key, value: value, lifetime: lifetime)
    let now = clock.now
    let outcome: Result<Bool, KeyValueFault> = entries.withLock { entries in
      entries = entries.filter { now < $0.value.expiresAt }
      if entries[key] != nil {
        if once { return .success(false) }
      } else if entries.count >= KeyValueLimits.entries {
        return .failure(.full)
      }
      entries[key] = Entry(value: value, expiresAt: now + Int64(lifetime / .milliseconds(1)))
      return .success(true)
    }
    return try outcome.get()
  }
}
