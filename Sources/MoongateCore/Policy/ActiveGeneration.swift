import MoongateSDK
import Synchronization

/// Holds the active policy generation and the status of the last refused candidate.
///
/// Each request reads `current` once and uses that generation until it ends.
package final class ActiveGeneration: Sendable {
  /// The status that `GET /policy` shows.
  package struct Status: Sendable {
    package let active: String
    package let since: Timestamp
    package let refused: RefusedCandidate?
    package let warnings: [ConfigurationProblem]
    /// Settings of the active generation that differ from those at start and need a restart to apply.
    package let restartNeeded: [ConfigurationProblem]
    /// The numbers of switches and of refused candidates since the start.
    package let switches: Int
    package let refusals: Int
  }

  /// A candidate that was not activated.
  package struct RefusedCandidate: Sendable, Equatable {
    /// The SHA-256 of its files, if they could be read.
    package let id: String?
    package let at: Timestamp
    package let problems: [ConfigurationProblem]

    package init(id: String?, at: Timestamp, problems: [ConfigurationProblem]) {
      self.id = id
      self.at = at
      self.problems = problems
    }
  }

  /// How many generations may be in memory: the active one and those that running requests still use.
  package static let maxLive = 8

  private struct WeakLease {
    weak var lease: GenerationLease?
  }

  private struct State {
    /// The leases of all generations that were active and may still be in use.
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
  private let evaluators: Mutex<IdleEvaluators>

  package init(_ first: any PolicyGeneration, at now: Timestamp) {
    state = Mutex(State(leases: [WeakLease(lease: first.lease)], current: first, since: now, refused: nil))
    evaluators = Mutex(IdleEvaluators())
  }

  /// The active generation.
  package var current: any PolicyGeneration { state.withLock { $0.current } }

  /// Increases with every switch. A holder of a copy of `current` can check without a lock whether the copy is still
  /// current.
  package var version: UInt64 { counter.load(ordering: .acquiring) }

  package var status: Status {
    state.withLock { state in
      Status(
        active: state.current.id, since: state.since, refused: state.refused, warnings: state.current.warnings,
        restartNeeded: state.restartNeeded, switches: state.switches,
        refusals: state.refusals)
    }
  }

  /// How many generations are in use.
  package var live: Int {
    state.withLock { state in
      state.leases.removeAll { $0.lease == nil }
      return state.leases.count
    }
  }

  /// Activates a validated generation and clears the refused candidate.
  /// - Parameter restartNeeded: settings that only apply after a restart.
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
    evaluators.withLock { $0 = IdleEvaluators() }
  }

  /// Updates the settings that only apply after a restart.
  package func note(restartNeeded: [ConfigurationProblem]) { state.withLock { $0.restartNeeded = restartNeeded } }

  /// Keeps the active generation and records why the candidate was refused.
  package func refuse(_ candidate: RefusedCandidate) {
    state.withLock { state in
      state.refused = candidate
      state.refusals += 1
    }
  }

  /// Clears the refused candidate, because the folder holds the active generation again.
  package func clearRefused() { state.withLock { $0.refused = nil } }

  /// Runs functions of the given generation on an evaluator that is not shared while the body runs.
  /// - Throws: `PolicyFault` if no evaluator can be created.
  package func withEvaluator<Result>(
    of generation: any PolicyGeneration, _ body: (any PolicyEvaluator) throws(PolicyFault) -> Result
  ) throws(PolicyFault) -> Result {
    let evaluator: any PolicyEvaluator
    if let idle = evaluators.withLock({ $0.take(for: generation.id) }) {
      evaluator = idle.evaluator
    } else {
      evaluator = try generation.makeEvaluator()
    }
    defer {
      let back = IdleEvaluator(evaluator: evaluator)
      let active = current.id
      evaluators.withLock { $0.putBack(back, of: generation.id, active: active) }
    }
    return try body(evaluator)
  }
}

/// Idle evaluators, all of one generation. At most as many as there are threads.
private struct IdleEvaluators {
  private static let most = 8
  private var generation = ""
  private var idle: [IdleEvaluator] = []

  mutating func take(for id: String) -> IdleEvaluator? { id == generation ? idle.popLast() : nil }

  mutating func putBack(_ evaluator: IdleEvaluator, of id: String, active: String) {
    guard id == active else { return }
    if id != generation {
      generation = id
      idle = []
    }
    if idle.count < Self.most { idle.append(evaluator) }
  }
}

/// @unchecked: an evaluator must not be shared, and is not: `take` removes it from the list under the lock before it
/// is used, and its user does not touch it after `putBack`.
private struct IdleEvaluator: @unchecked Sendable {
  let evaluator: any PolicyEvaluator
}
