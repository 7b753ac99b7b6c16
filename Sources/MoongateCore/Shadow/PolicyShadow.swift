import MoongateSDK
import Synchronization

/// Evaluates a candidate configuration on live traffic beside the active generation, without effect.
///
/// Requests only add their questions to a bounded queue and continue; what exceeds the bound is dropped and counted. A
/// separate low-priority thread asks both generations again, each with its own, initially empty counters, and compares
/// the answers. It sends no messages and does not write to the gateway's store.
package final class PolicyShadow: Sendable {
  /// The status for operators.
  package struct Status: Sendable {
    package let candidate: any PolicyGeneration
    /// The folder from which it was loaded.
    package let folder: String
    package let since: Timestamp
    /// The operator who started it.
    package let by: String?
    /// The active generation that it is compared with.
    package let against: String
    package let tally: ShadowTally
    /// The number of dropped questions, by kind.
    package let dropped: [String: Int]
    /// How often the counters were reset because there were too many.
    package let restarts: Int
    /// Why the comparison has stopped.
    package let failure: String?
  }

  private struct State {
    var run = 0
    var candidate: (any PolicyGeneration)?
    var folder = ""
    var since = Timestamp(milliseconds: 0)
    var by: String?
    var acts: [ObservedQuestion] = []
    var requests: [ObservedQuestion] = []
    var dropped: [String: Int] = [:]
    var failure: String?
  }

  /// The results. They have a separate lock: the comparing thread has low priority, and while it holds a lock no
  /// request may wait for that lock.
  private struct Findings {
    var run = 0
    var against = ""
    var tally = ShadowTally()
    var restarts = 0
  }

  /// About 2 KiB each.
  static let maxActs = 2_048
  /// At most `longestTarget` and a few headers each.
  static let maxRequests = 1_024
  /// The maximum length of path and query, in bytes. Longer ones are dropped.
  package static let longestTarget = 2_048
  private static let pause: Duration = .milliseconds(20)

  private let generations: ActiveGeneration
  private let keys: KeyRing
  private let random: any RandomSource
  private let makeStore: @Sendable () throws -> any Store
  private let state = Mutex(State())
  private let findings = Mutex(Findings())
  private let on = Atomic(false)
  /// The number of waiting requests, readable without a lock.
  private let waiting = Atomic(0)
  private let droppedRequests = Atomic(0)

  /// - Parameter makeStore: creates an empty in-memory store for counters.
  package init(
    generations: ActiveGeneration, keys: KeyRing, random: any RandomSource,
    makeStore: @escaping @Sendable () throws -> any Store
  ) {
    self.generations = generations
    self.keys = keys
    self.random = random
    self.makeStore = makeStore
  }

  /// Whether a candidate is being evaluated. Cheap to call.
  package var isOn: Bool { on.load(ordering: .relaxed) }

  /// nil if no candidate is being evaluated.
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

  /// Starts evaluating a candidate, in place of the current one.
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

  /// Stops the evaluation and discards its results.
  /// - Returns: whether a candidate was being evaluated.
  @discardableResult
  package func end() -> Bool {
    on.store(false, ordering: .releasing)
    return state.withLock { state in
      let was = state.candidate != nil
      state = State(run: state.run + 1)
      return was
    }
  }

  // MARK: Called while serving

  /// Adds the questions of a flow's request to the queue. Never waits.
  func take(_ watch: RequestWatch, _ request: RequestDecision) {
    let acts = watch.questions.map { ObservedQuestion(decision: request.decision, at: request.at, question: $0) }
    state.withLock { state in
      guard state.candidate != nil, state.failure == nil else { return }
      let room = max(0, Self.maxActs - state.acts.count)
      state.acts += acts.prefix(room)
      for act in acts.dropFirst(room) { state.dropped[act.question.kind, default: 0] += 1 }
    }
  }

  /// Whether the queue has room for a request to a service. If not, counts the request as dropped.
  package func hasRoom() -> Bool {
    guard waiting.load(ordering: .relaxed) < Self.maxRequests else {
      droppedRequests.add(1, ordering: .relaxed)
      return false
    }
    return true
  }

  /// Adds a request to a service to the queue. Never waits.
  package func take(_ request: ObservedRequest, _ decision: DecisionID, at now: Timestamp) {
    guard request.facts.path.utf8.count + request.facts.query.utf8.count <= Self.longestTarget else {
      droppedRequests.add(1, ordering: .relaxed)
      return
    }
    let isTaken = state.withLock { state in
      guard state.candidate != nil, state.failure == nil, state.requests.count < Self.maxRequests else { return false }
      state.requests.append(ObservedQuestion(decision: decision, at: now, question: .request(request)))
      return true
    }
    if isTaken { waiting.add(1, ordering: .relaxed) } else { droppedRequests.add(1, ordering: .relaxed) }
  }

  // MARK: The comparing thread

  /// Compares until the evaluation of this candidate ends. Run this on a low-priority thread.
  package func work() async {
    let run = state.withLock { $0.run }
    var judge: ShadowJudge?
    while !Task.isCancelled, state.withLock({ $0.run == run && $0.candidate != nil }) {
      if await !look(run, &judge) { try? await Task.sleep(for: Self.pause) }
    }
  }

  /// Compares everything in the queue.
  /// - Returns: whether the queue had any entries.
  func look(_ run: Int? = nil, _ judge: inout ShadowJudge?) async -> Bool {
    let (began, candidate, steps, requests) = state.withLock {
      state -> (Int, (any PolicyGeneration)?, [ObservedQuestion], [ObservedQuestion]) in
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
          // Another generation is active now, so earlier results no longer apply.
          (found.against, found.tally) = (active.id, ShadowTally())
        }
      } catch {
        fail("its functions or counters cannot be created: \(error)")
        return false
      }
    }
    for act in acts {
      guard isOn, let current = judge else { return false }
      if current.isSilent(about: act.question) { continue }
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

  /// Stops the comparison. The results so far stay visible.
  private func fail(_ why: String) {
    on.store(false, ordering: .releasing)
    state.withLock { state in
      state.failure = why
      (state.acts, state.requests) = ([], [])
    }
  }
}

/// Identifies a request.
struct RequestDecision {
  let decision: DecisionID
  let at: Timestamp
}

/// The two generations that are compared.
struct ShadowJudge {
  let active: ShadowSide
  let candidate: ShadowSide

  func answers(to act: ObservedQuestion) async throws -> (active: ShadowAnswer, candidate: ShadowAnswer) {
    let first = try await active.answer(act.question, at: act.at)
    return (first, try await candidate.answer(act.question, at: act.at))
  }

  /// Whether neither generation has a rule about the question.
  func isSilent(about question: ObservedQuestion.Question) -> Bool {
    guard case .admission = question else { return false }
    return [active, candidate].allSatisfy { $0.generation.accounts.admit == nil }
  }
}

extension PolicyShadow {
  /// The metrics. All counts restart with each candidate.
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
