import MoongateCore

/// A store's database for an operator's commands: used without the key, on one connection, one transaction at a time.
/// Operations may take long and block the thread.
protocol StoreSnapshot: Sendable {
  /// The display name, without a password.
  var name: String { get }

  /// - Returns: the schema version; 0 if the database is empty; nil if it does not exist.
  /// - Throws: why it cannot be used, such as another program's tables or a newer schema.
  func version() throws(StoreRefusal) -> Int?
  /// Creates the database if it does not exist, and migrates its schema.
  /// - Returns: the previous schema version.
  func migrate() throws(StoreRefusal) -> Int
  /// The damage that the database reports about its files, as the original messages.
  func damage() throws -> [String]
  /// Runs the work in a read transaction with a consistent snapshot.
  func read<Work: SnapshotWork>(_ work: Work) throws -> Work.Value
  /// Runs the work in a write transaction, which is rolled back if the work throws.
  func write<Work: SnapshotWork>(_ work: Work) throws -> Work.Value
}

/// Work in one transaction, on any kind of database.
protocol SnapshotWork {
  associatedtype Value

  func run(_ rows: some SQLTransaction) throws -> Value
}
