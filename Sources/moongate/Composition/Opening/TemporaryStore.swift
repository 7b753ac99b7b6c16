import MoongateCore
import MoongateStore

/// Empty stores in memory, for test cases and for replays of decisions. Nothing of them remains.
enum TemporaryStore {
  @Sendable static func make() throws -> any Store { try SQLiteStore(path: ":memory:", keyFingerprint: []) }
}
