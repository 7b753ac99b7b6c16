import MoongateCore
import MoongateStore

extension SQLiteStore {
  /// An in-memory store for a test. It exists as long as the value.
  package static func memory() throws -> SQLiteStore {
    try SQLiteStore(path: ":memory:", keyFingerprint: [UInt8](repeating: 7, count: 16))
  }
}

/// A store for tests that do not depend on the kind of database.
package enum MemoryStore {
  package static func make() throws -> any Store { try SQLiteStore.memory() }
}
