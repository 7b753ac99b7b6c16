import Logging
import Synchronization

/// Finds and ends sessions.
package struct SessionDirectory: Sendable {
  private let store: any SessionStore
  private let clock: any GatewayClock

  package init(store: any SessionStore, clock: any GatewayClock) {
    self.store = store
    self.clock = clock
  }

  /// The session, if it lives and its account is not locked.
  package func find(_ token: TokenHash) async throws(StoreFault) -> SessionSnapshot? {
    guard let found = try await store.session(token), found.isLive(at: clock.now()) else { return nil }
    return found
  }

  /// The live sessions of an account, newest first.
  package func sessions(of account: String) async throws(StoreFault) -> [Session] {
    let now = clock.now()
    return try await store.sessions(of: account).filter { now < $0.deadline }
  }
}

extension SessionSnapshot {
  /// Whether it is a session at the moment: at its deadline it is none.
  package func isLive(at now: Timestamp) -> Bool { now < session.deadline && !account.isLocked }
}

/// Looks every quarter of a second for what happened to sessions, in this process or another, and tells the caches.
///
/// A cache may believe an entry only while `isFresh`: a node that cannot look stops believing (exact.md, "More").
package final class SessionWatch: Sendable {
  /// How old the last successful look may be.
  package static let trust: Duration = .seconds(1)
  private static let interval: Duration = .milliseconds(250)

  private let store: any SessionStore
  private let logger: Logger
  private let subscribers = Mutex<[@Sendable (SessionChanges) -> Void]>([])
  /// Nanoseconds of the steady clock since `origin`; 0: never yet.
  private let lastLook = Atomic<Int64>(0)
  private let origin = ContinuousClock.now

  package init(store: any SessionStore, logger: Logger) {
    self.store = store
    self.logger = logger
  }

  /// Calls back on an unspecified thread; the callback must be quick.
  package func subscribe(_ callback: @escaping @Sendable (SessionChanges) -> Void) {
    subscribers.withLock { $0.append(callback) }
  }

  /// Whether the last successful look is young enough to believe a cache.
  package var isFresh: Bool {
    let last = lastLook.load(ordering: .acquiring)
    return last > 0 && sinceOrigin - last < Self.trust.wholeMilliseconds * 1_000_000
  }

  private var sinceOrigin: Int64 { (ContinuousClock.now - origin).wholeNanoseconds + 1 }

  /// Looks until the task is cancelled. The first look only learns where the changes begin: nothing from before it is
  /// believed.
  /// - Parameter pause: waits between two looks. A caller with a thread of its own blocks that one: a busy pool must
  ///   not come late, since nobody's session is believed then without asking the store.
  package func run(pause: @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) }) async {
    var sequence: Int64?
    var wasFailing = false
    while !Task.isCancelled {
      do {
        let started = sinceOrigin
        let found = try await store.sessionChanges(after: sequence ?? .max)
        // What was remembered before the first look may have ended before it. After a failover another server answers,
        // one that may lack what we saw last and have given its numbers to other changes.
        let believesNothing = sequence == nil || wasFailing
        let changes =
          believesNothing ? SessionChanges(latest: found.latest, tokens: [], accounts: [], isIncomplete: true) : found
        if !changes.tokens.isEmpty || !changes.accounts.isEmpty || changes.isIncomplete {
          for subscriber in subscribers.withLock({ $0 }) { subscriber(changes) }
        }
        sequence = changes.latest
        lastLook.store(started, ordering: .releasing)
        if wasFailing { logger.notice("the store answers again") }
        wasFailing = false
      } catch {
        if !wasFailing {
          logger.error("the store cannot be asked for session changes", metadata: ["fault": "\(error)"])
        }
        wasFailing = true
      }
      await pause(Self.interval)
    }
  }
}
