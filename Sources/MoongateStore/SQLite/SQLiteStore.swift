import MoongateCore

/// The store in one SQLite file, shared by the processes of one machine.
package final class SQLiteStore: SQLStore {
  package let database: SQLiteDatabase
  package let memory = SQLStoreMemory()

  /// Opens the store and brings its schema up to date. Blocks while it does.
  /// - Parameters:
  ///   - path: of the file; `:memory:` for one that lives with this value.
  ///   - keyFingerprint: `KeyRing.fingerprint` of the master key: a store answers to the key it was made with.
  ///   - makes: whether a store is made where there is none; else that is refused.
  package init(path: String, keyFingerprint: [UInt8], makes: Bool = true) throws(StoreRefusal) {
    database = try SQLiteDatabase(path: path, keyFingerprint: keyFingerprint, makes: makes)
  }
}
