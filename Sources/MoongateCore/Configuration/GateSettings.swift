/// `gate = { replay = "24h", most_flips = "0.5%" }` of gateway.lua: what a reload must not change.
package struct GateSettings: Sendable, Hashable {
  /// How far back the recorded decisions are that a reload is judged by.
  package var replay: Duration
  /// Which share of them may change: 0 to 1.
  package var mostFlips: Double
  /// The mark of the change that the operator accepts whatever it changes: the first 16 or more digits of
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
