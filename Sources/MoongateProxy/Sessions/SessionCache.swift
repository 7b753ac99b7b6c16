import MoongateCore
import MoongateSDK
import NIOCore

/// The sessions, or the tokens of programs, that one event loop remembers, so that a request costs no round trip to the
/// store.
///
/// An entry is believed only while the store's changes are being heard (`SessionWatch.isFresh`); a change removes it.
/// The number of entries and of questions at work is bounded, so that random tokens cost a bounded number of reads.
final class SessionCache {
  /// What is known of a token.
  enum Answer {
    case live(CachedSession)
    case none
    /// A wrong token, from an address that has sent too many: until then.
    case locked(until: Timestamp)
    /// The store cannot be believed at the moment.
    case unavailable
    /// It has to be asked.
    case unknown
  }

  /// What the store found.
  enum Finding: Sendable {
    case live(SessionSnapshot)
    case absent
    case locked(until: Timestamp)
  }

  /// Asks the store. Runs on any thread.
  typealias Lookup = @Sendable () async throws -> Finding

  private static let most = 16_384
  private static let mostDead = 1024
  private static let mostAsking = 64
  private static let mostWaiting = 1024

  private let eventLoop: any EventLoop
  private let trust: CacheTrust
  /// Whether what is not there is remembered. A wrong token is not: each time that it comes, it is counted.
  private let remembersDead: Bool
  private var live: [SessionKey: CachedSession] = [:]
  /// By what changes are announced, where that is not the key: of tokens.
  private var aliases: [SessionKey: SessionKey] = [:]
  private var dead: Set<SessionKey> = []
  private var asking: [SessionKey: Question] = [:]
  private var queue: [Question] = []
  private var working = 0
  private var waiting = 0
  /// Goes up with every change: an answer that was asked for before it may be out of date and is not kept.
  private var changes: UInt64 = 0
  private var counted = EventLoopMetrics.Cache()
  private var activity: [TokenHash: Timestamp] = [:]

  /// A question to the store, with those who wait for its answer.
  private final class Question {
    let key: SessionKey
    let lookup: Lookup
    var callbacks: [(Answer) -> Void]
    /// `changes` when the store was asked; nil: not yet.
    var asked: UInt64?

    init(_ key: SessionKey, _ lookup: @escaping Lookup, _ callback: @escaping (Answer) -> Void) {
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

  /// How often it knew, and how much it holds.
  var numbers: EventLoopMetrics.Cache {
    var now = counted
    now.entries = live.count
    return now
  }

  /// What is remembered. Does not wait.
  func known(_ key: SessionKey, now: Timestamp) -> Answer {
    guard trust.isGiven else { return .unknown }
    if let session = live[key] {
      if session.isLive(at: now) {
        counted.live += 1
        return .live(session)
      }
      // It may have been used on another event loop or node since: only the store knows.
      forget(key)
      return .unknown
    }
    guard dead.contains(key) else { return .unknown }
    counted.dead += 1
    return .none
  }

  /// Whether this very finding is remembered, so that a change of it will be told.
  func holds(_ session: CachedSession) -> Bool { live[session.key] === session }

  /// Asks the store. The callback comes on the event loop, later.
  /// - Parameter lookup: how; of several that ask about one key at once, the first one's.
  func ask(_ key: SessionKey, by lookup: @escaping Lookup, _ callback: @escaping (Answer) -> Void) {
    guard waiting < Self.mostWaiting else {
      counted.unavailable += 1
      return callback(.unavailable)
    }
    counted.asked += 1
    waiting += 1
    // Attack: a request that begins after a sign-out joins a question from before it, and is answered that the session
    // lives.
    if let question = asking[key], question.asked ?? changes == changes, trust.isGiven || question.asked == nil {
      question.callbacks.append(callback)
      return
    }
    let question = Question(key, lookup, callback)
    asking[key] = question
    guard working < Self.mostAsking else {
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
      let answer: Answer
      switch result {
      case .success(.live(let snapshot)):
        let session = CachedSession(key: key, snapshot: snapshot)
        if asked == self.changes { self.keep(session) }
        answer = .live(session)
      case .success(.absent):
        if self.remembersDead {
          if self.dead.count >= Self.mostDead { self.dead.removeAll(keepingCapacity: true) }
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
      // The order of a dictionary is as good as random: an eighth goes, and comes back where it is still in use.
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

  /// Notes that the session was used, and when that is to be written down.
  func used(_ session: CachedSession, now: Timestamp) {
    session.lastSeenAt = max(session.lastSeenAt, now)
    guard now >= session.activityKnownUntil else { return }
    let idle = session.snapshot.session.idle.wholeMilliseconds
    session.activityKnownUntil = now + .milliseconds(min(30_000, max(1000, idle / 100)))
    let known = session.snapshot.session
    activity[known.domain?.home ?? known.token] = now
  }

  /// The uses since the last call.
  func takeActivity() -> [TokenHash: Timestamp] {
    if activity.isEmpty { return [:] }
    defer { activity = [:] }
    return activity
  }

  /// Forgets what changed.
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
