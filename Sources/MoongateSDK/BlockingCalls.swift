import Foundation
import Synchronization

/// Threads of a provider for calls that block, such as those of a C library. Each site has threads of its own, so that
/// one that does not answer holds up no other.
public final class BlockingCalls: Sendable {
  /// All threads of a site are in use, and so are the places of calls that wait for one.
  public struct Busy: Error, CustomStringConvertible {
    public var description: String { "all connections to the site are in use" }
  }

  private let threads: Int
  private let waiting: Int
  private let queues = Mutex<[String: OperationQueue]>([:])

  /// - Parameters:
  ///   - threads: the maximum number of calls at once to one site.
  ///   - waiting: the maximum number of calls that wait for a thread of one site.
  public init(threads: Int, waiting: Int) {
    self.threads = threads
    self.waiting = waiting
  }

  /// Runs a call on a thread of the site. The call must end by itself in time, also if it had to wait.
  ///
  /// Attack: a client that closes its connection while the site judges a guess makes the call a fault, which is not
  /// counted. So the call is not cancelled with its task.
  /// - Throws: `Busy` if no call can be taken, or what the call throws.
  public func run<Result: Sendable>(at site: String, _ body: @escaping @Sendable () throws -> Result) async throws
    -> Result
  {
    let queue = queues.withLock { queues in
      let queue = queues[site] ?? OperationQueue()
      queue.maxConcurrentOperationCount = threads
      queues[site] = queue
      return queue
    }
    guard queue.operationCount < threads + waiting else { throw Busy() }
    return try await withCheckedThrowingContinuation { continuation in
      queue.addOperation { continuation.resume(with: Swift.Result { try body() }) }
    }
  }
}
