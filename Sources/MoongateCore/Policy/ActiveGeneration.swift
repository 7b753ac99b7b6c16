import MoongateSDK
import Synchronization

/// The one generation that is active, and what is to be said of the candidate that was refused after it.
///
/// Whoever serves a request takes `current` once and uses it to the end of that request.
package final class ActiveGeneration: Sendable {
  /// What `GET /policy` shows.
  package struct Status: Sendable {
    package let active: String
    package let since: Timestamp
    package let refused: RefusedCandidate?
    package let warnings: [ConfigurationProblem]
    /// What the active generation says otherwise than the process was started with, and cannot change while it runs.
    package let restartNeeded: [ConfigurationProblem]
    /// Switches, and candidates that were refused, since the start.
    package let switches: Int
    package let refusals: Int
  }

  /// A candidate that was not switched on.
  package struct RefusedCandidate: Sendable, Equatable {
    /// The SHA-256 over its files, where they could be read.
    package let id: String?
    package let at: Timestamp
    package let problems: [ConfigurationProblem]

    package init(id: String?, at: Timestamp, problems: [ConfigurationProblem]) {
      self.id = id
      self.at = at
      self.problems = problems
    }
  }

  /// How many generations may be in memory: the active one and those that requests under way still use.
  package static let mostLive = 8

  private struct WeakLease {
    weak var lease: GenerationLease?
  }

  private struct State {
    /// Of every generation that was active and may still be held.
    var leases: [WeakLease]
    var current: any PolicyGeneration
    var since: Timestamp
    var restartNeeded: [ConfigurationProblem] = []
    var refused: RefusedCandidate?
    var switches = 0
    var refusals = 0
  }

  private let state: Mutex<State>
  private let counter = Atomic<UInt64>(1)
  private let evaluators: Mutex<EvaluatorShelf>

  package init(_ first: any PolicyGeneration, at now: Timestamp) {
    state = Mutex(State(leases: [WeakLease(lease: first.lease)], current: first, since: now, refused: nil))
    evaluators = Mutex(EvaluatorShelf())
  }

  /// The active generation.
  package var current: any PolicyGeneration { state.withLock { $0.current } }

  /// Goes up with every switch: who keeps a copy of `current` looks here, without a lock, whether it is still the one.
  package var version: UInt64 { counter.load(ordering: .acquiring) }

  package var status: Status {
    state.withLock { state in
      Status(
        active: state.current.id, since: state.since, refused: state.refused, warnings: state.current.warnings,
        restartNeeded: state.restartNeeded, switches: state.switches,
        refusals: state.refusals)
    }
  }

  /// How many generations somebody holds.
  package var live: Int {
    state.withLock { state in
      state.leases.removeAll { $0.lease == nil }
      return state.leases.count
    }
  }

  /// Switches to a validated generation; a refused candidate is forgotten.
  /// - Parameter restartNeeded: what of it holds only when the process is started again.
  package func activate(
    _ generation: any PolicyGeneration, at now: Timestamp, restartNeeded: [ConfigurationProblem] = []
  ) {
    state.withLock { state in
      state.leases.removeAll { $0.lease == nil || $0.lease === generation.lease }
      state.leases.append(WeakLease(lease: generation.lease))
      state.current = generation
      state.since = now
      state.restartNeeded = restartNeeded
      state.refused = nil
      state.switches += 1
    }
    counter.add(1, ordering: .releasing)
    evaluators.withLock { $0 = EvaluatorShelf() }
  }

  /// What holds only when the process is started again is something else by now.
  package func note(restartNeeded: [ConfigurationProblem]) { state.withLock { $0.restartNeeded = restartNeeded } }

  /// Keeps the active generation and remembers why the candidate was refused.
  package func refuse(_ candidate: RefusedCandidate) {
    state.withLock { state in
      state.refused = candidate
      state.refusals += 1
    }
  }

  /// Forgets the refused candidate: the folder holds the active generation again.
  package func clearRefused() { state.withLock { $0.refused = nil } }

  /// Runs functions of the given generation on an evaluator that nobody else uses meanwhile.
  /// - Throws: `PolicyFault` where none can be made.
  package func withEvaluator<Result>(
    of generation: any PolicyGeneration, _ body: (any PolicyEvaluator) throws(PolicyFault) -> Result
  ) throws(PolicyFault) -> Result {
    let evaluator: any PolicyEvaluator
    if let parked = evaluators.withLock({ $0.take(for: generation.id) }) {
      evaluator = parked.evaluator
    } else {
      evaluator = try generation.makeEvaluator()
    }
    defer {
      let back = ParkedEvaluator(evaluator: evaluator)
      let active = current.id
      evaluators.withLock { $0.park(back, of: generation.id, active: active) }
    }
    return try body(evaluator)
  }
}

/// Evaluators that wait for work: at most as many as there are threads, all of one generation.
private struct EvaluatorShelf {
  private static let most = 8
  private var generation = ""
  private var parked: [ParkedEvaluator] = []

  mutating func take(for id: String) -> ParkedEvaluator? { id == generation ? parked.popLast() : nil }

  mutating func park(_ evaluator: ParkedEvaluator, of id: String, active: String) {
    guard id == active else { return }
    if id != generation {
      generation = id
      parked = []
    }
    if parked.count < Self.most { parked.append(evaluator) }
  }
}

/// @unchecked: an evaluator is not safe to share, and is not shared: `take` removes it from the shelf under the lock
/// before anybody uses it, and `park` is its user's last act with it.
private struct ParkedEvaluator: @unchecked Sendable {
  let evaluator: any PolicyEvaluator
}
