import Foundation
import Logging
import MoongateCore
import MoongateStore

/// The opened store of a configuration with its clock.
struct OpenedStore: Sendable {
  let store: any SQLStore
  /// For SQLite the machine's clock; for PostgreSQL the server's clock, so that gateways with different clocks agree.
  let clock: SystemClock
  /// How far the wall clock is behind the latest time that the store has recorded. Not positive if it is not behind.
  let clockLag: Duration
  /// The metrics of the store and of the database driver.
  let families: @Sendable () async -> [MetricFamily]
  /// Calls the closure when sessions may have changed, if the database supports notifications.
  let listen: @Sendable (_ call: @escaping @Sendable () -> Void) -> Void

  /// The time that a start waits for a database server that is also starting or has no free connection.
  private static let timeLimit: Duration = .seconds(10)
  /// The minimum duration of a failed start, so that a restart loop does not flood the server with wrong passwords.
  private static let shortestFailure: Duration = .seconds(1)

  /// Opens the store for a gateway. Retries while the server is not available yet.
  /// - Throws: an error for the operator.
  static func forServing(_ location: StoreLocation, _ keys: KeyRing, logger: Logger) async throws -> OpenedStore {
    let end = ContinuousClock.now + timeLimit
    var pause: Duration = .milliseconds(250)
    var isTold = false
    while true {
      do {
        let opened = try await OpenedStore(location, keys, purpose: .serving)
        if let warning = opened.clockWarning(location) { logger.warning("\(warning)") }
        return opened
      } catch let refusal as StoreRefusal {
        let goesOn = refusal.mayPass && ContinuousClock.now + pause < end
        if goesOn, !isTold {
          logger.warning(
            "the store is not available yet; retrying for \(Self.timeLimit.asWritten)", metadata: ["why": "\(refusal)"])
        }
        isTold = true
        if case .postgres = location {
          try? await Task.sleep(for: goesOn ? pause * Double.random(in: 0.75...1.25) : shortestFailure)
        }
        guard goesOn else { throw refusal }
        pause = min(pause * 2, .seconds(2))
      }
    }
  }

  /// Opens the store.
  /// - Parameters:
  ///   - purpose: a gateway's start creates a missing store, a command does not.
  ///   - interruptedRetirementKey: the key of the ring that the store belongs to, if it is not the oldest key.
  /// - Throws: `StoreRefusal`, or `StoreFault` if the store cannot be read.
  init(
    _ location: StoreLocation, _ keys: KeyRing, purpose: PostgresStore.Purpose = .working,
    interruptedRetirementKey: String? = nil
  )
    async throws
  {
    do {
      self = try await Self.open(
        location, interruptedRetirementKey.flatMap { keys.fingerprint(of: $0) } ?? keys.fingerprint, purpose)
    } catch StoreRefusal.otherKey(let path) {
      guard let found = try? StoreCopier(location).fingerprint(), let interruptedRetirementKey = keys.holder(of: found)
      else {
        throw StoreRefusal.otherKey(path: path)
      }
      throw StoreRefusal.retirementInterrupted(
        path: path, retired: keys.oldestName, interruptedRetirementKey: interruptedRetirementKey)
    }
  }

  private static func open(_ location: StoreLocation, _ fingerprint: [UInt8], _ purpose: PostgresStore.Purpose)
    async throws -> OpenedStore
  {
    let makes = purpose == .serving
    switch location {
    case .sqlite(let path):
      let sqlite = try SQLiteStore(path: path, keyFingerprint: fingerprint, makes: makes)
      let latest = try await sqlite.latestMoment()
      let clock = SystemClock(floor: latest)
      let gauges = StoreGauges(sqlite, clock: clock, path: path)
      return OpenedStore(
        store: sqlite, clock: clock, clockLag: latest - SystemClock.systemWall(),
        families: { await gauges.families() }, listen: { _ in })
    case .postgres(let url):
      let postgres = try PostgresStore(url: url, keyFingerprint: fingerprint, purpose: purpose, makes: makes)
      let latest = try await postgres.latestMoment()
      let clock = SystemClock(floor: latest, wall: postgres.clock.wall)
      let gauges = StoreGauges(postgres, clock: clock, path: nil)
      return OpenedStore(
        store: postgres, clock: clock, clockLag: latest - postgres.clock.wall(),
        families: { await gauges.families() + postgres.families },
        listen: { postgres.listen($0) })
    }
  }

  private init(
    store: any SQLStore, clock: SystemClock, clockLag: Duration,
    families: @escaping @Sendable () async -> [MetricFamily],
    listen: @escaping @Sendable (_ call: @escaping @Sendable () -> Void) -> Void
  ) {
    self.store = store
    self.clock = clock
    self.clockLag = clockLag
    self.families = families
    self.listen = listen
  }

  /// The warning for a start with a wall clock that is more than a minute behind; nil if it is not.
  private func clockWarning(_ location: StoreLocation) -> String? {
    guard clockLag > .seconds(60) else { return nil }
    let minutes = Duration.seconds(clockLag.components.seconds / 60 * 60).asWritten
    let (owner, advice) =
      switch location {
      case .sqlite: ("this machine", "Run `timedatectl` and correct the clock if it is wrong.")
      case .postgres: ("the PostgreSQL server", "Correct the clock of that machine if it is wrong.")
      }
    return "the clock of \(owner) is \(minutes) behind the latest time in the store, from which the gateway continues. "
      + advice
  }

  /// The error of libpq for the connection string of the store, located in gateway.lua.
  static func problems(of gateway: GatewaySettings) -> [ConfigurationProblem] {
    guard case .postgres(let url) = gateway.store, let problem = PostgresStore.problem(of: url) else { return [] }
    return [
      ConfigurationProblem(
        location: gateway.locations["store"] ?? SourceLocation(file: "gateway.lua", line: 0), path: "store",
        message: "the connection string \(problem)")
    ]
  }
}
