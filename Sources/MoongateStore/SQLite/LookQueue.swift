import GRDB
import MoongateCore
import Synchronization

/// Reads, on the connections for reading. What waits when one of them is free shares its transaction: a transaction and
/// its change of threads cost more than most reads.
///
/// A read sees everything that was committed before it was asked for: who joins a transaction does so before it begins.
final class LookQueue: Sendable {
  private typealias Look = @Sendable (Result<Database, any Error>) -> Void

  private struct State {
    var waiting: [Look] = []
    var atWork = 0
  }

  /// The most reads that share a transaction.
  private static let most = 64
  /// As many as there are connections.
  private static let width = SQLiteConfiguration.base.maximumReaderCount

  private let reader: any DatabaseReader
  private let state = Mutex(State())

  init(reader: any DatabaseReader) { self.reader = reader }

  /// How many reads wait for a connection.
  var waiting: Int { state.withLock { $0.waiting.count } }

  /// - Throws: what the body throws, or what kept its transaction from beginning.
  func read<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      let look: Look = { database in continuation.resume(with: Result { try body(database.get()) }) }
      let isFree = state.withLock { state in
        if state.atWork < Self.width {
          state.atWork += 1
          return true
        }
        state.waiting.append(look)
        return false
      }
      if isFree { work([look]) }
    }
  }

  private func work(_ batch: [Look]) {
    reader.asyncRead { [self] database in
      for look in batch { look(database) }
      let next = state.withLock { state in
        let next = Array(state.waiting.prefix(Self.most))
        state.waiting.removeFirst(next.count)
        if next.isEmpty { state.atWork -= 1 }
        return next
      }
      if !next.isEmpty { work(next) }
    }
  }
}
