import MoongateCore
import MoongateSDK
import Synchronization

/// A session store for tests. It can be unavailable, counts its reads, and notifies changes.
final class FakeSessions: SessionStore {
  private struct State {
    var sessions: [TokenHash: SessionSnapshot] = [:]
    var changes: [(tokens: [TokenHash], accounts: [String])] = []
    var isDown = false
    var findsNothing = false
    var reads = 0
    var touched: [TokenHash: SessionUse] = [:]
    var holds = false
    var held: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())

  var reads: Int { state.withLock { $0.reads } }
  var touched: [TokenHash: SessionUse] { state.withLock { $0.touched } }
  var isDown: Bool {
    get { state.withLock { $0.isDown } }
    set { state.withLock { $0.isDown = newValue } }
  }

  /// Changes are notified, but lookups fail.
  var cannotFind: Bool {
    get { state.withLock { $0.findsNothing } }
    set { state.withLock { $0.findsNothing = newValue } }
  }

  func put(_ token: String, _ snapshot: SessionSnapshot) {
    state.withLock { $0.sessions[TokenHash(of: token.utf8)] = snapshot }
  }

  /// Replaces the session of an account and notifies a change of the account.
  func change(_ token: String, _ snapshot: SessionSnapshot) {
    state.withLock { state in
      state.sessions[TokenHash(of: token.utf8)] = snapshot
      state.changes.append(([], [snapshot.account.id]))
    }
  }

  /// Signs out.
  func end(_ token: String) {
    state.withLock { state in
      let hash = TokenHash(of: token.utf8)
      state.sessions[hash] = nil
      state.changes.append(([hash], []))
    }
  }

  /// Signs out without a notification for `SessionWatch`.
  func endUnheard(_ token: String) { state.withLock { $0.sessions[TokenHash(of: token.utf8)] = nil } }

  /// Holds back answers after reading them.
  func holdAnswers() { state.withLock { $0.holds = true } }

  /// Releases held answers, and answers at once from now on.
  func releaseAnswers() {
    let held = state.withLock { state in
      defer { (state.holds, state.held) = (false, []) }
      return state.held
    }
    for answer in held { answer.resume() }
  }

  func session(_ token: TokenHash) async throws(StoreFault) -> SessionSnapshot? {
    let (found, isDown, isHeld) = state.withLock { state in
      state.reads += 1
      return (state.sessions[token], state.isDown || state.findsNothing, state.holds && state.sessions[token] != nil)
    }
    if isHeld {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          if state.holds { state.held.append(continuation) }
          return !state.holds
        }
        if isOver { continuation.resume() }
      }
    }
    if isDown { throw StoreFault("down") }
    return found
  }

  func sessions(of account: String) async throws(StoreFault) -> [Session] { [] }

  func sessions(openedBy siteSession: String, limit: Int) async throws(StoreFault) -> [Session] { [] }

  func session(replacing token: TokenHash, at now: Timestamp) async throws(StoreFault) -> Session? { nil }

  func touch(_ uses: [TokenHash: SessionUse]) async throws(StoreFault) {
    state.withLock { $0.touched.merge(uses) { $0.at < $1.at ? $1 : $0 } }
  }

  func sessionChanges(after sequence: Int64) async throws(StoreFault) -> SessionChanges {
    let (changes, isDown) = state.withLock { ($0.changes, $0.isDown) }
    if isDown { throw StoreFault("down") }
    let new = sequence == .max ? [] : Array(changes.dropFirst(Int(sequence)))
    return SessionChanges(
      latest: Int64(changes.count), tokens: new.flatMap(\.tokens), accounts: new.flatMap(\.accounts),
      isIncomplete: false)
  }
}

/// An audit store that keeps all events in memory.
final class FakeAudit: AuditStore {
  private let kept = Mutex<[AuditEvent]>([])

  func append(_ events: [AuditEvent]) async throws(StoreFault) { kept.withLock { $0 += events } }
  func events(limit: Int) async throws(StoreFault) -> [AuditEvent] {
    kept.withLock { Array($0.reversed().prefix(limit)) }
  }
  func event(_ id: DecisionID) async throws(StoreFault) -> AuditEvent? { kept.withLock { $0.first { $0.id == id } } }
}
