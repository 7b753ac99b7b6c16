import MoongateCore

/// A store in a PostgreSQL database, shared by any number of gateways.
package final class PostgresStore: SQLStore {
  package let database: PostgresDatabase
  package let memory = SQLStoreMemory()
  /// The server's clock, which is the same for all nodes.
  package let clock: ServerClock
  private let listening: PostgresListening

  /// What the store is used for.
  package enum Purpose: Sendable {
    /// A gateway, whose clients wait two seconds at most.
    case serving
    /// A command, which waits as long as necessary.
    case working
  }

  /// Connects and migrates the schema. Blocks the calling thread.
  /// - Parameters:
  ///   - url: `postgres://user:password@host/database`, as libpq reads it.
  ///   - keyFingerprint: `KeyRing.fingerprint` of the master key. A store can only be opened with the key it was
  ///     created with.
  ///   - makes: whether to create missing tables and assign them to the key. Otherwise a missing store is refused.
  package init(url: String, keyFingerprint: [UInt8], purpose: Purpose = .serving, makes: Bool = true)
    throws(StoreRefusal)
  {
    let snapshot = try PostgresSnapshot(url: url)
    clock = try snapshot.opened { connection in
      if !makes, try !snapshot.isOwned(connection) { throw StoreRefusal.nothingThere(path: snapshot.name) }
      _ = try snapshot.migrate(connection)
      let isOwn = try snapshot.transaction(.writing, on: connection) { rows in
        try MetaRows.assignOwner(fingerprint: keyFingerprint, rows).isOwn
      }
      guard isOwn else { throw StoreRefusal.otherKey(path: snapshot.name) }
      guard let clock = ServerClock(try connection.clockReadings()) else {
        throw StoreFault("its clock cannot be read")
      }
      return clock
    }
    database = PostgresDatabase(snapshot.address, timing: purpose == .serving ? .serving : .patient)
    listening = PostgresListening(snapshot.address)
  }

  /// Checks a connection string without connecting.
  /// - Returns: the problem as the end of a sentence, without quoting the string; nil if it is valid.
  package static func problem(of url: String) -> String? {
    do throws(PostgresAddress.Problem) {
      _ = try PostgresAddress(url)
      return nil
    } catch {
      return error.description
    }
  }

  /// Calls back whenever sessions may have changed on any node, and keeps the clock synchronised, until the store is
  /// closed.
  /// - Parameter call: called on a separate thread. Must return quickly.
  package func listen(_ call: @escaping @Sendable () -> Void) {
    listening.start(metrics: database.metrics, clock: clock, call)
  }

  /// The driver's metrics, for `GET /metrics`.
  package var families: [MetricFamily] { database.families }

  /// Refuses new work. Connections close once the running work has ended.
  package func close() throws(StoreFault) {
    listening.end()
    try database.close()
  }

  deinit { listening.end() }
}
