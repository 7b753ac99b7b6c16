import MoongateCore

/// A store in a SQLite file, shared by the processes of one machine.
package final class SQLiteStore: SQLStore {
  package let database: SQLiteDatabase
  package let memory = SQLStoreMemory()

  /// Opens the store and migrates its schema. Blocks the calling thread.
  /// - Parameters:
  ///   - path: the file; `:memory:` for an in-memory store that exists as long as this value.
  ///   - keyFingerprint: `KeyRing.fingerprint` of the master key. A store can only be opened with the key it was
  ///     created with.
  ///   - makes: whether to create a missing store. Otherwise it is refused.
  package init(path: String, keyFingerprint: [UInt8], makes: Bool = true) throws(StoreRefusal) {
    database = try SQLiteDatabase(path: path, keyFingerprint: keyFingerprint, makes: makes)
  }
}
