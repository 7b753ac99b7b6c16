import MoongateCore

/// The store in a PostgreSQL database, shared by any number of gateways.
package final class PostgresStore: SQLStore {
  package let database: PostgresDatabase
  package let memory = SQLStoreMemory()
  /// What time it is on the server: the time that counts on every node.
  package let clock: ServerClock
  private let listening: PostgresListening

  /// For whom it is opened.
  package enum Purpose: Sendable {
    /// For a gateway: its clients wait two seconds.
    case serving
    /// For a command, which waits for as long as it takes.
    case working
  }

  /// Connects and brings the schema up to date. Blocks while it does.
  /// - Parameters:
  ///   - url: `postgres://user:password@host/database`, as libpq reads it.
  ///   - keyFingerprint: `KeyRing.fingerprint` of the master key: a store answers to the key it was made with.
  ///   - makes: whether the tables are made, and become the key's, where there are none; else that is refused.
  package init(url: String, keyFingerprint: [UInt8], purpose: Purpose = .serving, makes: Bool = true)
    throws(StoreRefusal)
  {
    let vault = try PostgresSnapshot(url: url)
    clock = try vault.opened { connection in
      if !makes, try !vault.isOwned(connection) { throw StoreRefusal.nothingThere(path: vault.name) }
      _ = try vault.migrate(connection)
      let isOwn = try vault.transaction(.writing, on: connection) { rows in
        try MetaRows.claim(fingerprint: keyFingerprint, rows).isOwn
      }
      guard isOwn else { throw StoreRefusal.otherKey(path: vault.name) }
      guard let clock = ServerClock(try connection.clockReadings()) else {
        throw StoreFault("it does not tell what time it is")
      }
      return clock
    }
    database = PostgresDatabase(vault.address, timing: purpose == .serving ? .serving : .patient)
    listening = PostgresListening(vault.address)
  }

  /// Checks a connection string without connecting.
  /// - Returns: what is wrong with it, as the end of a sentence and without a piece of it; nil where nothing is.
  package static func problem(of url: String) -> String? {
    do throws(PostgresAddress.Problem) {
      _ = try PostgresAddress(url)
      return nil
    } catch {
      return error.description
    }
  }

  /// Calls whenever sessions may have changed on some node, and keeps the clock set; until the store is closed.
  /// - Parameter call: on a thread of its own; must be quick.
  package func listen(_ call: @escaping @Sendable () -> Void) {
    listening.start(numbers: database.numbers, clock: clock, call)
  }

  /// What the driver counts, for `GET /metrics`.
  package var families: [MetricFamily] { database.families }

  /// Turns away what comes from now on; connections close when what runs has ended.
  package func close() throws(StoreFault) {
    listening.end()
    try database.close()
  }

  deinit { listening.end() }
}
