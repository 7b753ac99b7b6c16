import Foundation
import Synchronization

/// Threads of a provider for calls that block, such as those of a C library. Each site has threads of its own, so that
/// one that does not answer holds up no other.
public final class BlockingCalls: Sendable {
  /// All threads of a site are in use, and so are the places of calls that wait for one.
  public struct Busy: Error, CustomStringConvertible {
    public var description: String { "all connections to the site are in use" }
  }

  private typealias Call = @Sendable () -> Void

  /// The calls to one site.
  private struct Site {
    var running = 0
    /// Oldest first.
    var waiting: [Call] = []
  }

  private let threads: Int
  private let waiting: Int
  private let sites = Mutex<[String: Site]>([:])

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
    try await withCheckedThrowingContinuation { continuation in
      let isTaken = take(at: site) { continuation.resume(with: Swift.Result { try body() }) }
      if !isTaken { continuation.resume(throwing: Busy()) }
    }
  }

  /// - Returns: false if all threads and places are in use.
  private func take(at site: String, _ call: @escaping Call) -> Bool {
    let needsThread: Bool? = sites.withLock { sites in
      var calls = sites[site] ?? Site()
      let isFree = calls.running < threads
      guard isFree || calls.waiting.count < waiting else { return nil }
      if isFree { calls.running += 1 } else { calls.waiting.append(call) }
      sites[site] = calls
      return isFree
    }
    // Attack: a site that takes connections and never answers. The pool of libdispatch has few threads, and all tasks
    // of the gateway run on it, so a call that blocks must not take one of them.
    if needsThread == true { Thread.detachNewThread { self.work(at: site, call) } }
    return needsThread != nil
  }

  /// Runs calls to a site until none waits.
  private func work(at site: String, _ first: @escaping Call) {
    var next: Call? = first
    while let call = next {
      call()
      next = sites.withLock { sites in
        guard var calls = sites[site] else { return nil }
        let next = calls.waiting.isEmpty ? nil : calls.waiting.removeFirst()
        if next == nil { calls.running -= 1 }
        sites[site] = calls.running == 0 ? nil : calls
        return next
      }
    }
  }
}
