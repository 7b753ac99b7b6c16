import Logging
import MoongateCore
import Synchronization
import Testing

/// What caches are told about changes of sessions.
@Suite struct SessionWatchTests {
  /// Answers each query with the next of the given values; nil stands for a fault.
  private final class Answers: SessionStore {
    private let left: Mutex<[SessionChanges?]>

    init(_ answers: [SessionChanges?]) { left = Mutex(answers) }

    var isEmpty: Bool { left.withLock { $0.isEmpty } }

    func session(_ token: TokenHash) async throws(StoreFault) -> SessionSnapshot? { nil }
    func sessions(of account: String) async throws(StoreFault) -> [Session] { [] }
    func sessions(openedBy siteSession: String, limit: Int) async throws(StoreFault) -> [Session] { [] }
    func session(replacing token: TokenHash, at now: Timestamp) async throws(StoreFault) -> Session? { nil }
    func touch(_ uses: [TokenHash: SessionUse]) async throws(StoreFault) {}

    func sessionChanges(after sequence: Int64) async throws(StoreFault) -> SessionChanges {
      guard let answer = left.withLock({ $0.removeFirst() }) else { throw StoreFault("gone") }
      return answer
    }
  }

  private static func changes(_ latest: Int64, _ accounts: [String] = []) -> SessionChanges {
    SessionChanges(latest: latest, tokens: [], accounts: accounts, isIncomplete: false)
  }

  private func told(_ answers: [SessionChanges?]) async -> [SessionChanges] {
    let store = Answers(answers)
    let watch = SessionWatch(store: store, logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
    let told = Mutex<[SessionChanges]>([])
    watch.subscribe { changes in told.withLock { $0.append(changes) } }
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await watch.run { _ in if store.isEmpty { withUnsafeCurrentTask { $0?.cancel() } } } }
    }
    return told.withLock { $0 }
  }

  private static func everything(_ latest: Int64) -> SessionChanges {
    SessionChanges(latest: latest, tokens: [], accounts: [], isIncomplete: true)
  }

  /// Attack: a sign-out between a cache's own read and the first query is not reported. Everything cached before
  /// that query is dropped.
  @Test func onlyActualChangesAreReported() async {
    #expect(
      await told([Self.changes(4, ["before"]), Self.changes(4), Self.changes(5, ["ac_1"])]) == [
        Self.everything(4), Self.changes(5, ["ac_1"]),
      ])
  }

  /// Attack: a sign-out on the server that took over, under a number that this gateway has already seen on the former
  /// one.
  @Test func cacheIsDroppedAfterAnOutage() async {
    #expect(
      await told([Self.changes(5), nil, nil, Self.changes(5), Self.changes(5)]) == [
        Self.everything(5), Self.everything(5),
      ])
  }
}
