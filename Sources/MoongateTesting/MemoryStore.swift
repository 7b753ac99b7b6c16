import MoongateCore
import MoongateStore

extension SQLiteStore {
  /// A store of a test's own, in memory, gone with the value.
  package static func memory() throws -> SQLiteStore {
    try SQLiteStore(path: ":memory:", keyFingerprint: [UInt8](repeating: 7, count: 16))
  }
}
