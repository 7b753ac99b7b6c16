import MoongateCore
import MoongateSDK

/// A PostgreSQL database, shared by any number of gateways.
package final class PostgresDatabase: SQLDatabase {
  private let pool: PostgresPool
  private let moments: RecordedMoment?
  let numbers = PostgresMetrics()

  /// Connects nowhere yet: the first work does.
  /// - Parameters:
  ///   - recordsMoments: whether there is a table for the latest moment.
  ///   - jitter: between 0 and 1, for pauses between attempts.
  init(
    _ address: PostgresAddress, timing: PostgresTiming, recordsMoments: Bool = true,
    jitter: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) }
  ) {
    pool = PostgresPool(address, timing: timing, numbers: numbers, jitter: jitter)
    moments = recordsMoments ? RecordedMoment() : nil
  }

  deinit { pool.close() }

  package func read<Value: Sendable>(_ body: @escaping @Sendable (PostgresTransaction) throws -> Value) async throws
    -> Value
  {
    try await carryOut(.looking, moment: nil, body)
  }

  package func write<Value: Sendable>(
    at moment: Timestamp, _ body: @escaping @Sendable (PostgresTransaction) throws -> Value
  ) async throws -> Value {
    try await carryOut(.writing, moment: moment, body)
  }

  /// What was deleted is overwritten when PostgreSQL gets to it (VACUUM), and stands in its log until that is: no
  /// command does it at once.
  package func forgetDeleted() async {}

  package func close() throws(StoreFault) { pool.close() }

  /// What the driver counts, for `GET /metrics`.
  package var families: [MetricFamily] { numbers.families(pool: pool.use) }

  /// Whether the database is known to be gone.
  var isOut: Bool { pool.isOut }

  private func carryOut<Value: Sendable>(
    _ kind: PostgresTransaction.Kind, moment: Timestamp?,
    _ body: @escaping @Sendable (PostgresTransaction) throws -> Value
  ) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      pool.add(
        PostgresTask(
          kind, deadline: ContinuousClock.now + pool.timing.queue, numbers: numbers, moments: moments, moment: moment,
          body: body,
          continuation: continuation))
    }
  }
}
