/// `gate = { replay = "24h", most_flips = "0.5%" }` in gateway.lua: which changes of decisions prevent a reload.
package struct GateSettings: Sendable, Hashable {
  /// The period of recorded decisions that are replayed against a reload.
  package var replay: Duration
  /// The share of decisions that may change, from 0 to 1.
  package var mostFlips: Double
  /// The mark of a change that the operator accepts regardless: the first 16 or more digits of
  /// `PolicyGeneration.changeMark`.
  package var accepted: String?

  package init(replay: Duration = .seconds(86_400), mostFlips: Double = 0.005, accepted: String? = nil) {
    self.replay = replay
    self.mostFlips = mostFlips
    self.accepted = accepted
  }

  /// Whether the operator accepts this change.
  package func accepts(_ mark: String) -> Bool { accepted.map { mark.hasPrefix($0.lowercased()) } ?? false }
}
