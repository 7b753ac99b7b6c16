import MoongateCore
import MoongateSDK
import NIOCore

/// The sessions or access tokens in the memory of one event loop, so that a request needs no round trip to the store.
///
/// Entries are used only while store changes are being received (`SessionWatch.isFresh`); a change removes its entry.
/// The number of entries and of open lookups is bounded, so that random tokens cause a bounded number of reads.
final class SessionCache {
  /// The result for a token.
  enum LookupResult {
    case live(CachedSession)
    case none
    /// A wrong token from an address that has sent too many, locked until the time.
    case locked(until: Timestamp)
    /// The store is currently unavailable.
    case unavailable
    /// The store must be read.
    case unknown
  }

  /// The result of the store.
  enum Finding: Sendable {
    case live(SessionSnapshot)
    case absent
    case locked(until: Timestamp)
  }

  /// Reads the store. Runs on any thread.
  typealias Lookup = @Sendable () async throws -> Finding

  private static let most = 16_384
  private static let maxEnded = 1024
  private static let maxLookups = 64
  private static let maxWaiting = 1024

  private let eventLoop: any EventLoop
  private let trust: CacheTrust
  /// Whether missing entries are cached. Wrong access tokens are not cached, because every use must be counted.
  private let remembersDead: Bool
  private var live: [SessionKey: CachedSession] = [:]
  /// The keys in change notifications, if they differ from the cache key (for access tokens).
  private var aliases: [SessionKey: SessionKey] = [:]
  private var dead: Set<SessionKey> = []
  private var asking: [SessionKey: Question] = [:]
  private var queue: [Question] = []
  private var working = 0
  private var waiting = 0
  /// Increases with every change. A result that was requested before a change may be outdated and is not cached.
  private var changes: UInt64 = 0
  private var counted = EventLoopMetrics.Cache()
  private var activity: [TokenHash: SessionUse] = [:]

  /// An open lookup with its waiting callbacks.
  private final class Question {
    let key: SessionKey
    let lookup: Lookup
    var callbacks: [(LookupResult) -> Void]
    /// The value of `changes` when the store was asked; nil before that.
    var asked: UInt64?

    init(_ key: SessionKey, _ lookup: @escaping Lookup, _ callback: @escaping (LookupResult) -> Void) {
      self.key = key
      self.lookup = lookup
      callbacks = [callback]
    }
  }

  init(eventLoop: any EventLoop, remembersDead: Bool, trust: CacheTrust = CacheTrust()) {
    self.eventLoop = eventLoop
    self.trust = trust
    self.remembersDead = remembersDead
  }

  /// The number of hits and entries.
  var metrics: EventLoopMetrics.Cache {
    var now = counted
    now.entries = live.count
    return now
  }

  /// The cached result. Never blocks.
  func known(_ key: SessionKey, now: Timestamp) -> LookupResult {
    guard trust.isGiven else { return .unknown }
    if let session = live[key] {
      if session.isLive(at: now) {
        counted.live += 1
        return .live(session)
      }
      // The session may have been used on another event loop or node since, which only the store records.
      forget(key)
      return .unknown
    }
    guard dead.contains(key) else { return .unknown }
    counted.dead += 1
    return .none
  }

  /// Whether this object is in the cache, so that a change will be notified.
  func holds(_ session: CachedSession) -> Bool { live[session.key] === session }

  /// Reads the store. The callback runs later on the event loop.
  /// - Parameter lookup: the read. If several callers ask for one key at once, the first lookup is used.
  func ask(_ key: SessionKey, by lookup: @escaping Lookup, _ callback: @escaping (LookupResult) -> Void) {
    guard waiting < Self.maxWaiting else {
      counted.unavailable += 1
      return callback(.unavailable)
    }
    counted.asked += 1
    waiting += 1
    // Attack: a request that starts after a sign-out joins an earlier lookup and gets the result that the session is
    // still valid.
    if let question = asking[key], question.asked ?? changes == changes, trust.isGiven || question.asked == nil {
      question.callbacks.append(callback)
      return
    }
    let question = Question(key, lookup, callback)
    asking[key] = question
    guard working < Self.maxLookups else {
      queue.append(question)
      return
    }
    start(question)
  }

  private func start(_ question: Question) {
    working += 1
    let key = question.key
    let asked = changes
    question.asked = asked
    let promise = eventLoop.makePromise(of: Finding.self)
    let lookup = question.lookup
    Task {
      do { promise.succeed(try await lookup()) } catch { promise.fail(error) }
    }
    promise.futureResult.assumeIsolated().whenComplete { result in
      self.working -= 1
      let answer: LookupResult
      switch result {
      case .success(.live(let snapshot)):
        let session = CachedSession(key: key, snapshot: snapshot)
        if asked == self.changes { self.keep(session) }
        answer = .live(session)
      case .success(.absent):
        if self.remembersDead {
          if self.dead.count >= Self.maxEnded { self.dead.removeAll(keepingCapacity: true) }
          if asked == self.changes { self.dead.insert(key) }
        }
        answer = .none
      case .success(.locked(let until)): answer = .locked(until: until)
      case .failure:
        self.counted.unavailable += 1
        answer = .unavailable
      }
      if self.asking[key] === question { self.asking[key] = nil }
      let callbacks = question.callbacks
      self.waiting -= callbacks.count
      if !self.queue.isEmpty { self.start(self.queue.removeFirst()) }
      for callback in callbacks { callback(answer) }
    }
  }

  private func keep(_ session: CachedSession) {
    if live.count >= Self.most {
      // Remove an eighth in dictionary order, which is practically random. Entries in use return to the cache.
      for key in Array(live.keys.prefix(Self.most / 8)) { forget(key) }
    }
    live[session.key] = session
    let alias = SessionKey(session.snapshot.session.token)
    if alias != session.key { aliases[alias] = session.key }
  }

  private func forget(_ key: SessionKey) {
    guard let session = live.removeValue(forKey: key), !aliases.isEmpty else { return }
    aliases[SessionKey(session.snapshot.session.token)] = nil
  }

  /// Records a use of the session and when it must be stored.
  /// - Parameter address: the client address, which is only needed if the use must be stored.
  func used(_ session: CachedSession, from address: @autoclosure () -> ClientAddress, now: Timestamp) {
    session.lastSeenAt = max(session.lastSeenAt, now)
    guard now >= session.activityKnownUntil else { return }
    let idle = session.snapshot.session.idle.wholeMilliseconds
    session.activityKnownUntil = now + .milliseconds(min(30_000, max(1000, idle / 100)))
    let known = session.snapshot.session
    activity[known.domain?.home ?? known.token] = SessionUse(at: now, address: address().description)
  }

  /// The uses since the last call.
  func takeActivity() -> [TokenHash: SessionUse] {
    if activity.isEmpty { return [:] }
    defer { activity = [:] }
    return activity
  }

  /// Removes changed entries.
  func apply(_ changed: SessionChanges) {
    changes &+= 1
    if changed.isIncomplete {
      live = [:]
      aliases = [:]
      dead = []
      return
    }
    for token in changed.tokens {
      let announced = SessionKey(token)
      let key = aliases.isEmpty ? announced : aliases[announced] ?? announced
      forget(key)
      dead.remove(key)
    }
    guard !changed.accounts.isEmpty else { return }
    let accounts = Set(changed.accounts)
    for (key, session) in live where accounts.contains(session.snapshot.account.id) { forget(key) }
  }
}
