import Foundation
import MoongateCore
import Synchronization

/// A transaction to be run on a connection, with its waiting caller.
protocol PostgresWork: Sendable {
  /// The time after which the work is no longer started.
  var deadline: ContinuousClock.Instant { get }
  /// Whether it may wait for locked rows.
  var writes: Bool { get }

  /// Runs the work on the connection's thread.
  /// - Returns: a closure that resumes the caller; nil if the connection broke before anything could have been
  ///   committed. The work may then be run on another connection.
  func run(on connection: PostgresConnection, jitter: () -> Double) -> (() -> Void)?
  /// Resumes the caller with an error: the work was not run.
  func fail(_ fault: StoreFault)
}

/// Retries a transaction that conflicted with another one, without involving its caller, after a random pause that
/// keeps the two from conflicting again.
struct PostgresRestart {
  /// The maximum number of retries. That many conflicts in a row mean that the database is overloaded.
  static let most = 30

  static func pause(_ round: Int, jitter: () -> Double) {
    let most = Double(min(round, 6)) * 0.004
    Thread.sleep(forTimeInterval: most * jitter())
  }
}

/// A store operation to be run in a transaction.
final class PostgresTask<Value: Sendable>: PostgresWork {
  /// The maximum number of connections on which it is tried.
  private static var maxConnections: Int { 3 }

  let deadline: ContinuousClock.Instant
  var writes: Bool { kind == .writing }
  private let kind: PostgresTransaction.Kind
  private let metrics: PostgresMetrics
  private let moments: RecordedMoment?
  private let moment: Timestamp?
  private let body: @Sendable (PostgresTransaction) throws -> Value
  private let continuation: CheckedContinuation<Value, any Error>
  private let connections = Mutex(0)

  /// More than five parameters: one for each field.
  /// - Parameters:
  ///   - moment: the time to record with the write; nil for a read.
  ///   - continuation: resumed once, on an unspecified thread.
  init(
    _ kind: PostgresTransaction.Kind, deadline: ContinuousClock.Instant, metrics: PostgresMetrics,
    moments: RecordedMoment?, moment: Timestamp?,
    body: @escaping @Sendable (PostgresTransaction) throws -> Value, continuation: CheckedContinuation<Value, any Error>
  ) {
    self.kind = kind
    self.deadline = deadline
    self.metrics = metrics
    self.moments = moments
    self.moment = moment
    self.body = body
    self.continuation = continuation
  }

  func fail(_ fault: StoreFault) { continuation.resume(throwing: fault) }

  func run(on connection: PostgresConnection, jitter: () -> Double) -> (() -> Void)? {
    let attempt = connections.withLock { count in
      count += 1
      return count
    }
    var round = 0
    var kind = kind
    while true {
      let transaction = PostgresTransaction(kind, on: connection)
      do {
        let value = try execute(transaction)
        metrics.ended(.committed)
        return { self.continuation.resume(returning: value) }
      } catch {
        transaction.rollBack()
        if transaction.failure is PostgresTransaction.SingleReadViolation {
          kind = .reading
          continue
        }
        // The database's first error counts, even if the body ignored it.
        let error: any Error = transaction.failure ?? error
        round += 1
        if (error as? PostgresError)?.meetsAnother ?? false, round <= PostgresRestart.most, !connection.isBroken {
          metrics.ended(.restarted)
          PostgresRestart.pause(round, jitter: jitter)
          continue
        }
        if connection.isBroken, !connection.wasSilent, attempt < Self.maxConnections,
          error as? PostgresError != .outcomeUnknown,
          ContinuousClock.now < deadline
        {
          metrics.ended(.restarted)
          return nil
        }
        let told = reported(error)
        return { self.continuation.resume(throwing: told) }
      }
    }
  }

  private func execute(_ transaction: PostgresTransaction) throws -> Value {
    let value = try body(transaction)
    guard let moments, let moment, let claimed = moments.claim(moment) else {
      try transaction.commit()
      return value
    }
    do {
      // Every transaction locks this row last, so that its holder never waits for another lock. This prevents
      // deadlocks.
      try transaction.run(RecordedMoment.statement, [SQLValue(moment)])
      try transaction.commit()
    } catch {
      moments.giveBack(claimed)
      throw error
    }
    return value
  }

  /// The error that the caller receives.
  private func reported(_ error: any Error) -> any Error {
    let told: any Error = (error as? PostgresError).map { $0.conflict ?? $0.fault } ?? error
    metrics.ended(
      error as? PostgresError == .outcomeUnknown ? .unknown : told is ChangeConflict ? .rolledBack : .failed)
    return told
  }
}

extension PostgresError {
  /// Conflicts that the database's constraints detect, in either order of the transactions.
  fileprivate var conflict: (any Error)? {
    switch self {
    case .refused(.uniqueViolation, constraint: "identifier_verified"),
      .refused(.uniqueViolation, constraint: "identifier_skeleton"),
      .refused(.uniqueViolation, constraint: "identifier_name"):
      ChangeConflict(.identifierTaken)
    case .refused(.uniqueViolation, constraint: "flow_hash_key"): ChangeConflict(.flowChanged)
    case .refused(.foreignKeyViolation, _): ChangeConflict(.accountUnavailable)
    default: nil
    }
  }
}

/// The latest time that this node has recorded in the database. All nodes update the same row, so each does it at most
/// once a second.
final class RecordedMoment: Sendable {
  static let statement = "UPDATE meta SET moment = greatest(moment, ?1)"
  private static let interval: Duration = .seconds(1)

  private let latest = Mutex(Timestamp(milliseconds: 0))

  /// - Returns: the previous time, if this one should be recorded now.
  func claim(_ moment: Timestamp) -> Timestamp? {
    latest.withLock { latest in
      guard moment >= latest + Self.interval else { return nil }
      defer { latest = moment }
      return latest
    }
  }

  /// Restores the previous time, because the new one was not recorded.
  func giveBack(_ before: Timestamp) { latest.withLock { $0 = before } }
}
