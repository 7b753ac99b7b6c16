import MoongateCore
import MoongateStore

extension SQLiteStore {
  /// A store of a test's own, in memory, gone with the value.
  package static func memory() throws -> SQLiteStore {
    try SQLiteStore(path: ":memory:", keyFingerprint: [UInt8](repeating: 7, count: 16))
  }
}

/// A store of a test's own, for tests that need to know of no database.
package enum MemoryStore {
  package static func make() throws -> any Store { try SQLiteStore.memory() }
}
