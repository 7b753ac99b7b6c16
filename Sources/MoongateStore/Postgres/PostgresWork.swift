import Foundation
import MoongateCore
import Synchronization

/// Work for a connection: one transaction, and whoever waits for it.
protocol PostgresWork: Sendable {
  /// Nobody begins it after this.
  var deadline: ContinuousClock.Instant { get }
  /// Whether it may wait for rows that somebody else holds.
  var writes: Bool { get }

  /// Carries it out, on the connection's thread.
  /// - Returns: what tells whoever waits; nil where the connection broke before anything could have been committed: it
  ///   may be carried out on another one.
  func run(on connection: PostgresConnection, jitter: () -> Double) -> (() -> Void)?
  /// Tells whoever waits that it was not carried out.
  func fail(_ fault: StoreFault)
}

/// A transaction that meets another one is begun anew behind its caller's back, after a random pause, so that two do
/// not meet again.
struct PostgresRestart {
  /// Beyond these it fails: as many meetings in a row mean that the database does nothing else.
  static let most = 30

  static func pause(_ round: Int, jitter: () -> Double) {
    let most = Double(min(round, 6)) * 0.004
    Thread.sleep(forTimeInterval: most * jitter())
  }
}

/// A body of the store, to be run in a transaction.
final class PostgresTask<Value: Sendable>: PostgresWork {
  /// On how many connections it is tried.
  private static var mostConnections: Int { 3 }

  let deadline: ContinuousClock.Instant
  var writes: Bool { kind == .writing }
  private let kind: PostgresTransaction.Kind
  private let numbers: PostgresMetrics
  private let moments: RecordedMoment?
  private let moment: Timestamp?
  private let body: @Sendable (PostgresTransaction) throws -> Value
  private let continuation: CheckedContinuation<Value, any Error>
  private let connections = Mutex(0)

  /// - Parameters:
  ///   - moment: recorded with what is written; nil where the transaction only reads.
  ///   - continuation: resumed once, on an unspecified thread.
  init(
    _ kind: PostgresTransaction.Kind, deadline: ContinuousClock.Instant, numbers: PostgresMetrics,
    moments: RecordedMoment?, moment: Timestamp?,
    body: @escaping @Sendable (PostgresTransaction) throws -> Value, continuation: CheckedContinuation<Value, any Error>
  ) {
    self.kind = kind
    self.deadline = deadline
    self.numbers = numbers
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
        let value = try carryOut(transaction)
        numbers.ended(.committed)
        return { self.continuation.resume(returning: value) }
      } catch {
        transaction.rollBack()
        if transaction.failure is PostgresTransaction.RepeatedRead {
          kind = .reading
          continue
        }
        // What the database said first counts, whatever the body made of it.
        let error: any Error = transaction.failure ?? error
        round += 1
        if (error as? PostgresError)?.meetsAnother ?? false, round <= PostgresRestart.most, !connection.isBroken {
          numbers.ended(.restarted)
          PostgresRestart.pause(round, jitter: jitter)
          continue
        }
        if connection.isBroken, !connection.wasSilent, attempt < Self.mostConnections,
          error as? PostgresError != .outcomeUnknown,
          ContinuousClock.now < deadline
        {
          numbers.ended(.restarted)
          return nil
        }
        let told = told(error)
        return { self.continuation.resume(throwing: told) }
      }
    }
  }

  private func carryOut(_ transaction: PostgresTransaction) throws -> Value {
    let value = try body(transaction)
    guard let moments, let moment, let claimed = moments.claim(moment) else {
      try transaction.commit()
      return value
    }
    do {
      // The last row that is locked, in every transaction: nobody waits for it and holds what another one wants.
      try transaction.run(RecordedMoment.statement, [SQLValue(moment)])
      try transaction.commit()
    } catch {
      moments.giveBack(claimed)
      throw error
    }
    return value
  }

  /// What whoever waits is told of an error.
  private func told(_ error: any Error) -> any Error {
    let told: any Error = (error as? PostgresError).map { $0.conflict ?? $0.fault } ?? error
    numbers.ended(
      error as? PostgresError == .outcomeUnknown ? .unknown : told is ChangeConflict ? .rolledBack : .failed)
    return told
  }
}

extension PostgresError {
  /// What the database itself keeps from being true twice, whoever asked first.
  fileprivate var conflict: (any Error)? {
    switch self {
    case .refused(.uniqueViolation, constraint: "identifier_verified"): ChangeConflict(.identifierTaken)
    case .refused(.uniqueViolation, constraint: "flow_hash_key"): ChangeConflict(.flowChanged)
    case .refused(.foreignKeyViolation, _): ChangeConflict(.accountUnavailable)
    default: nil
    }
  }
}

/// The latest moment that this node has recorded in the database. Every node writes the same row, so it does so once a
/// second at most.
final class RecordedMoment: Sendable {
  static let statement = "UPDATE meta SET moment = greatest(moment, ?1)"
  private static let interval: Duration = .seconds(1)

  private let latest = Mutex(Timestamp(milliseconds: 0))

  /// - Returns: the one before, where this moment is to be recorded now.
  func claim(_ moment: Timestamp) -> Timestamp? {
    latest.withLock { latest in
      guard moment >= latest + Self.interval else { return nil }
      defer { latest = moment }
      return latest
    }
  }

  /// It was not recorded.
  func giveBack(_ before: Timestamp) { latest.withLock { $0 = before } }
}
