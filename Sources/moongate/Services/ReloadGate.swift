import MoongateCore
import MoongatePolicy
import MoongateSDK

/// Keeps a candidate out that would change too many of the decisions that were recorded (`gate` in gateway.lua).
///
/// The gate of the active generation counts. Attack: a candidate that takes the gate away goes through no gate.
struct ReloadGate: Sendable {
  /// What the gate says of a candidate.
  enum Answer: Sendable, Equatable {
    /// - note: for the log and the trail; nil where there is no gate.
    case open(note: String?)
    case shut(ConfigurationProblem)
  }

  /// How long the decisions may take to be played, on a thread of low priority beside a gateway in service.
  static let patience: Duration = .seconds(60)

  let store: any AuditSearch
  let audit: AuditTrail
  let providers: ProviderRegistry
  let clock: any GatewayClock
  var patience = Self.patience
  var makeStore: @Sendable () throws -> any Store = PassingStore.make

  /// Plays the recorded decisions against both. Never waits longer than `patience`.
  /// - Parameter isForced: whether the operator wants the candidate whatever it changes.
  func answer(to candidate: any PolicyGeneration, in active: any PolicyGeneration, isForced: Bool) async -> Answer {
    guard let gate = active.gateway.gate else { return .open(note: nil) }
    if isForced { return .open(note: "passed over by --force") }
    if let own = candidate.gateway.gate, own.accepts(candidate.changeMark) {
      return .open(note: "flips_accepted names this change")
    }
    let since = clock.now() - gate.replay
    let span = gate.replay.asWritten
    do {
      let filter = AuditFilter(kinds: GateReplay.kinds, since: since)
      let events = try await audit.events(matching: filter, limit: GateReplay.mostEvents, in: store)
      guard let outcome = try await play(GateReplay(events: events), active, candidate) else {
        return shut(
          active, "the decisions of the last \(span) could not be played within \(patience.asWritten): shorten `replay`"
        )
      }
      let isCut = events.count >= GateReplay.mostEvents
      let what =
        isCut
        ? "the newest \(outcome.decisions) decisions" : "\(outcome.decisions) decisions recorded in the last \(span)"
      if outcome.decisions == 0 {
        return .open(note: "no decision that can be played was recorded in the last \(span): nothing was compared")
      }
      let share = GuessBudget.percent(outcome.share)
      if outcome.share <= gate.mostFlips { return .open(note: "\(outcome.changed) of \(what) change (\(share))") }
      let few = outcome.flips.prefix(3).map(\.text).joined(separator: "; ")
      let stale = candidate.gateway.gate?.accepted == nil ? "" : " (`flips_accepted` names another change)"
      return shut(
        active,
        """
        \(outcome.changed) of \(what) would change (\(share)), and `most_flips` lets \(GuessBudget.percent(gate.mostFlips)) through\(stale): \(few). To \
        accept exactly this change, add flips_accepted = "\(candidate.changeMark.prefix(16))" to `gate`
        """)
    } catch {
      return shut(active, "the recorded decisions could not be played: \(error)")
    }
  }

  private func shut(_ active: any PolicyGeneration, _ message: String) -> Answer {
    .shut(
      ConfigurationProblem(
        location: active.gateway.locations["gate"] ?? SourceLocation(file: "gateway.lua", line: 0), path: "gate",
        message: "\(message); or `moongate reload --force`"))
  }

  /// - Returns: nil where it took too long.
  private func play(
    _ replay: GateReplay, _ active: any PolicyGeneration, _ candidate: any PolicyGeneration
  ) async throws -> GateReplay.Outcome? {
    try await withThrowingTaskGroup(of: GateReplay.Outcome?.self) { group in
      group.addTask {
        let played = await DedicatedThread.run(at: .quiet) { () -> Result<GateReplay.Outcome, any Error> in
          do {
            return .success(
              try await replay.run(old: active, new: candidate, providers: providers, makeStore: makeStore))
          } catch {
            return .failure(error)
          }
        }
        return try played.get()
      }
      // Not on that thread, which is busy.
      group.addTask {
        try await Task.sleep(for: patience)
        return nil
      }
      defer { group.cancelAll() }
      return try await group.next() ?? nil
    }
  }
}
