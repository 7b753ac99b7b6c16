import MoongateSDK
import Synchronization

/// A candidate that judges live traffic beside the active generation, without effect.
///
/// Whoever serves a request only leaves what was asked, in a queue that is bounded, and goes on; what is too much is
/// dropped and counted. One thread that nobody waits for asks both generations again, each with counters of its own
/// that begin empty, and compares. It sends nothing and writes nothing.
package final class PolicyShadow: Sendable {
  /// What operators are shown.
  package struct Status: Sendable {
    package let candidate: any PolicyGeneration
    /// The folder that it was loaded from.
    package let folder: String
    package let since: Timestamp
    /// Who began it.
    package let by: String?
    /// The active generation that it is compared with.
    package let against: String
    package let tally: ShadowTally
    /// What there was no room for, by kind.
    package let dropped: [String: Int]
    /// How often the counters began anew, since there were too many.
    package let restarts: Int
    /// Why nothing is compared any more.
    package let failure: String?
  }

  private struct State {
    var run = 0
    var candidate: (any PolicyGeneration)?
    var folder = ""
    var since = Timestamp(milliseconds: 0)
    var by: String?
    var acts: [WatchedAct] = []
    var requests: [WatchedAct] = []
    var dropped: [String: Int] = [:]
    var failure: String?
  }

  /// What was found. It has a lock of its own: the thread that compares has little priority, and while it holds one
  /// nobody who serves may wait for it.
  private struct Findings {
    var run = 0
    var against = ""
    var tally = ShadowTally()
    var restarts = 0
  }

  /// Some 2 KiB each.
  static let mostActs = 2_048
  /// At most `longestTarget` and a few headers each.
  static let mostRequests = 1_024
  /// Longer paths and queries are not looked at.
  package static let longestTarget = 2_048
  private static let pause: Duration = .milliseconds(20)

  private let generations: ActiveGeneration
  private let keys: KeyRing
  private let random: any RandomSource
  private let makeStore: @Sendable () throws -> any Store
  private let state = Mutex(State())
  private let findings = Mutex(Findings())
  private let on = Atomic(false)
  /// How many requests wait, for whoever asks without a lock.
  private let waiting = Atomic(0)
  private let droppedRequests = Atomic(0)

  /// - Parameter makeStore: makes an empty store in memory, for counters.
  package init(
    generations: ActiveGeneration, keys: KeyRing, random: any RandomSource,
    makeStore: @escaping @Sendable () throws -> any Store
  ) {
    self.generations = generations
    self.keys = keys
    self.random = random
    self.makeStore = makeStore
  }

  /// Whether a candidate looks on. Costs nothing to ask.
  package var isOn: Bool { on.load(ordering: .relaxed) }

  /// nil where no candidate looks on.
  package var status: Status? {
    let (state, found) = (state.withLock { $0 }, findings.withLock { $0 })
    guard let candidate = state.candidate, found.run == state.run else { return nil }
    var dropped = state.dropped
    let requests = droppedRequests.load(ordering: .relaxed)
    if requests > 0 { dropped["request"] = requests }
    return Status(
      candidate: candidate, folder: state.folder, since: state.since, by: state.by, against: found.against,
      tally: found.tally, dropped: dropped,
      restarts: found.restarts, failure: state.failure)
  }

  /// Lets a candidate look on, in place of the one that does.
  package func begin(_ candidate: any PolicyGeneration, folder: String, by: String?, at now: Timestamp) {
    state.withLock { state in
      state = State(run: state.run + 1)
      state.candidate = candidate
      state.folder = folder
      state.since = now
      state.by = by
      findings.withLock { $0 = Findings(run: state.run, against: generations.current.id) }
    }
    waiting.store(0, ordering: .relaxed)
    droppedRequests.store(0, ordering: .relaxed)
    on.store(true, ordering: .releasing)
  }

  /// Ends it, and forgets what it has seen.
  /// - Returns: whether there was one.
  @discardableResult
  package func end() -> Bool {
    on.store(false, ordering: .releasing)
    return state.withLock { state in
      let was = state.candidate != nil
      state = State(run: state.run + 1)
      return was
    }
  }

  // MARK: those who serve

  /// Leaves what a request of a flow asked. Never waits.
  func take(_ watch: RequestWatch, _ request: RequestDecision) {
    let acts = watch.questions.map { WatchedAct(decision: request.decision, at: request.at, question: $0) }
    state.withLock { state in
      guard state.candidate != nil, state.failure == nil else { return }
      let room = max(0, Self.mostActs - state.acts.count)
      state.acts += acts.prefix(room)
      for act in acts.dropFirst(room) { state.dropped[act.question.kind, default: 0] += 1 }
    }
  }

  /// Whether there is room for a request to a service; counts it as dropped where there is none.
  package func hasRoom() -> Bool {
    guard waiting.load(ordering: .relaxed) < Self.mostRequests else {
      droppedRequests.add(1, ordering: .relaxed)
      return false
    }
    return true
  }

  /// Leaves a request to a service. Never waits.
  package func take(_ request: WatchedRequest, _ decision: DecisionID, at now: Timestamp) {
    guard request.facts.path.utf8.count + request.facts.query.utf8.count <= Self.longestTarget else {
      droppedRequests.add(1, ordering: .relaxed)
      return
    }
    let isTaken = state.withLock { state in
      guard state.candidate != nil, state.failure == nil, state.requests.count < Self.mostRequests else { return false }
      state.requests.append(WatchedAct(decision: decision, at: now, question: .request(request)))
      return true
    }
    if isTaken { waiting.add(1, ordering: .relaxed) } else { droppedRequests.add(1, ordering: .relaxed) }
  }

  // MARK: the thread that compares

  /// Compares until this candidate's time is over. To be run on a thread of low priority.
  package func work() async {
    let run = state.withLock { $0.run }
    var judge: ShadowJudge?
    while !Task.isCancelled, state.withLock({ $0.run == run && $0.candidate != nil }) {
      if await !look(run, &judge) { try? await Task.sleep(for: Self.pause) }
    }
  }

  /// Compares what waits.
  /// - Returns: whether anything waited.
  func look(_ run: Int? = nil, _ judge: inout ShadowJudge?) async -> Bool {
    let (began, candidate, steps, requests) = state.withLock {
      state -> (Int, (any PolicyGeneration)?, [WatchedAct], [WatchedAct]) in
      if let run, state.run != run { return (state.run, nil, [], []) }
      defer { (state.acts, state.requests) = ([], []) }
      return (state.run, state.candidate, state.acts, state.requests)
    }
    let acts = steps + requests
    waiting.store(0, ordering: .relaxed)
    guard let candidate else { return false }
    let active = generations.current
    if active.id == candidate.id {
      end()
      return false
    }
    if judge?.active.generation.id != active.id {
      do {
        judge = try ShadowJudge(active: side(active), candidate: side(candidate))
        findings.withLock { found in
          guard found.run == began, found.against != active.id else { return }
          // Another generation serves: what was seen before is of the one before.
          (found.against, found.tally) = (active.id, ShadowTally())
        }
      } catch {
        fail("its functions or counters cannot be made: \(error)")
        return false
      }
    }
    for act in acts {
      guard isOn, let current = judge else { return false }
      do {
        let answers = try await current.answers(to: act)
        findings.withLock { found in
          guard found.run == began else { return }
          found.tally.note(act, answers.active, answers.candidate)
          found.restarts = current.candidate.restarts
        }
      } catch {
        fail("its counters failed: \(error)")
        return false
      }
    }
    return !acts.isEmpty
  }

  private func side(_ generation: any PolicyGeneration) throws -> ShadowSide {
    try ShadowSide(generation, keys: keys, random: random, makeStore: makeStore)
  }

  /// Goes on showing what was seen; nothing more is taken.
  private func fail(_ why: String) {
    on.store(false, ordering: .releasing)
    state.withLock { state in
      state.failure = why
      (state.acts, state.requests) = ([], [])
    }
  }
}

/// Which request it was.
struct RequestDecision {
  let decision: DecisionID
  let at: Timestamp
}

/// The two sides.
struct ShadowJudge {
  let active: ShadowSide
  let candidate: ShadowSide

  func answers(to act: WatchedAct) async throws -> (active: ShadowAnswer, candidate: ShadowAnswer) {
    let first = try await active.answer(act.question, at: act.at)
    return (first, try await candidate.answer(act.question, at: act.at))
  }
}

extension PolicyShadow {
  /// For `/metrics`; what there is to count begins anew with each candidate.
  package var families: [MetricFamily] {
    let status = status
    let kinds = ["step", "condition", "flow", "request"]
    let samples = { (counts: [String: Int]?) in
      kinds.map { MetricFamily.Sample([("kind", $0)], Double(counts?[$0] ?? 0)) }
    }
    return [
      MetricFamily(.shadow, isOn ? 1 : 0),
      MetricFamily(.shadowJudgedTotal, samples(status?.tally.judged)),
      MetricFamily(.shadowDifferingTotal, samples(status?.tally.differing)),
      MetricFamily(.shadowDroppedTotal, samples(status?.dropped)),
    ]
  }
}
