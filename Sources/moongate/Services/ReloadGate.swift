import MoongateCore
import MoongatePolicy
import MoongateProgram
import MoongateSDK

/// Refuses a candidate that would change too many recorded decisions (`gate` in gateway.lua).
///
/// The gate of the active generation applies. Attack: a candidate that removes the gate would otherwise pass without a
/// check.
struct ReloadGate: Sendable {
  /// The result of the gate for a candidate.
  enum Answer: Sendable, Equatable {
    /// - note: for the log and the audit trail; nil if there is no gate.
    case open(note: String?)
    case shut(ConfigurationProblem)
  }

  /// The time limit for replaying the decisions on a low-priority thread.
  static let timeLimit: Duration = .seconds(60)

  let store: any AuditSearch
  let audit: AuditTrail
  let providers: ProviderRegistry
  let clock: any GatewayClock
  var timeLimit = Self.timeLimit
  var makeStore: @Sendable () throws -> any Store = TemporaryStore.make

  /// Replays the recorded decisions with both generations, for at most `timeLimit`.
  /// - Parameter isForced: whether to accept the candidate regardless of changes.
  func answer(to candidate: any PolicyGeneration, in active: any PolicyGeneration, isForced: Bool) async -> Answer {
    // A change of secrets alone changes no decision.
    guard let gate = active.gateway.gate, candidate.id != active.id else { return .open(note: nil) }
    if isForced { return .open(note: "skipped by --force") }
    if let own = candidate.gateway.gate, own.accepts(candidate.changeMark) {
      return .open(note: "flips_accepted names this change")
    }
    let since = clock.now() - gate.replay
    let span = gate.replay.asWritten
    do {
      let filter = AuditFilter(kinds: GateReplay.kinds, since: since)
      let events = try await audit.events(matching: filter, limit: GateReplay.maxEvents, in: store)
      guard let outcome = try await play(GateReplay(events: events), active, candidate) else {
        return shut(
          active,
          "the decisions of the last \(span) could not be replayed within \(timeLimit.asWritten): shorten `replay`"
        )
      }
      let isCut = events.count >= GateReplay.maxEvents
      let what =
        isCut
        ? "the newest \(outcome.decisions) decisions" : "\(outcome.decisions) decisions recorded in the last \(span)"
      if outcome.decisions == 0 {
        return .open(note: "no replayable decision was recorded in the last \(span), so nothing was compared")
      }
      let share = GuessBudget.percent(outcome.share)
      if outcome.share <= gate.mostFlips { return .open(note: "\(outcome.changed) of \(what) change (\(share))") }
      let few = outcome.flips.prefix(3).map(\.text).joined(separator: "; ")
      let stale = candidate.gateway.gate?.accepted == nil ? "" : " (`flips_accepted` names another change)"
      return shut(
        active,
        """
        \(outcome.changed) of \(what) would change (\(share)), and `most_flips` allows \(GuessBudget.percent(gate.mostFlips))\(stale): \(few). To \
        accept exactly this change, add flips_accepted = "\(candidate.changeMark.prefix(16))" to `gate`
        """)
    } catch {
      return shut(active, "the recorded decisions could not be replayed: \(error)")
    }
  }

  private func shut(_ active: any PolicyGeneration, _ message: String) -> Answer {
    .shut(
      ConfigurationProblem(
        location: active.gateway.locations["gate"] ?? SourceLocation(file: "gateway.lua", line: 0), path: "gate",
        message: "\(message); or `moongate reload --force`"))
  }

  /// - Returns: nil if the time limit has passed.
  private func play(
    _ replay: GateReplay, _ active: any PolicyGeneration, _ candidate: any PolicyGeneration
  ) async throws -> GateReplay.Outcome? {
    try await withThrowingTaskGroup(of: GateReplay.Outcome?.self) { group in
      group.addTask {
        let played = await DedicatedThread.run(at: .lowPriority) { () -> Result<GateReplay.Outcome, any Error> in
          do {
            return .success(
              try await replay.run(old: active, new: candidate, providers: providers, makeStore: makeStore))
          } catch {
            return .failure(error)
          }
        }
        return try played.get()
      }
      // Run the timer outside the dedicated thread, which is busy.
      group.addTask {
        try await Task.sleep(for: timeLimit)
        return nil
      }
      defer { group.cancelAll() }
      return try await group.next() ?? nil
    }
  }
}
