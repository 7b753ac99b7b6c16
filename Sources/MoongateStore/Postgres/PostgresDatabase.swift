import MoongateCore
import MoongateSDK

/// A PostgreSQL database, shared by any number of gateways.
package final class PostgresDatabase: SQLDatabase {
  private let pool: PostgresPool
  private let moments: RecordedMoment?
  let metrics = PostgresMetrics()

  /// Does not connect yet; the first operation does.
  /// - Parameters:
  ///   - recordsMoments: whether the table for the latest time exists.
  ///   - jitter: random numbers between 0 and 1, for pauses between retries.
  init(
    _ address: PostgresAddress, timing: PostgresTiming, recordsMoments: Bool = true,
    jitter: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) }
  ) {
    pool = PostgresPool(address, timing: timing, metrics: metrics, jitter: jitter)
    moments = recordsMoments ? RecordedMoment() : nil
  }

  deinit { pool.close() }

  package func read<Value: Sendable>(_ body: @escaping @Sendable (PostgresTransaction) throws -> Value) async throws
    -> Value
  {
    try await execute(.looking, moment: nil, body)
  }

  package func write<Value: Sendable>(
    at moment: Timestamp, _ body: @escaping @Sendable (PostgresTransaction) throws -> Value
  ) async throws -> Value {
    try await execute(.writing, moment: moment, body)
  }

  /// Does nothing. PostgreSQL overwrites deleted data only later (VACUUM), and its log keeps it until then. No command
  /// does this at once.
  package func forgetDeleted() async {}

  package func close() throws(StoreFault) { pool.close() }

  /// The driver's metrics, for `GET /metrics`.
  package var families: [MetricFamily] { metrics.families(pool: pool.use) }

  /// Whether the database is known to be unavailable.
  var isOut: Bool { pool.isOut }

  private func execute<Value: Sendable>(
    _ kind: PostgresTransaction.Kind, moment: Timestamp?,
    _ body: @escaping @Sendable (PostgresTransaction) throws -> Value
  ) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      pool.add(
        PostgresTask(
          kind, deadline: ContinuousClock.now + pool.timing.queue, metrics: metrics, moments: moments, moment: moment,
          body: body,
          continuation: continuation))
    }
  }
}
