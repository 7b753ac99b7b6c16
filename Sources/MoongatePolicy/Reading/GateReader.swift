import MoongateCore

/// Reads `gate = { replay = "24h", most_flips = "0.5%", flips_accepted = "…" }`.
struct GateReader {
  /// The recorded decisions of a longer time are too many to be played while somebody waits.
  private static let replays: ClosedRange<Duration> = .seconds(60)...(.seconds(7 * 86_400))
  /// The first digits of a hash that no two changes share by chance.
  private static let mark = 16...64

  let problems: Problems

  func read(_ node: LuaNode) -> GateSettings? {
    guard let reader = TableReader(node, .gate, path: "gate", problems: problems) else { return nil }
    var gate = GateSettings()
    if let node = reader.take("replay"), let replay = Field.duration(node, "gate.replay", problems) {
      if Self.replays.contains(replay) {
        gate.replay = replay
      } else {
        problems.add(
          node.location, "gate.replay",
          "\"\(replay.asWritten)\" is \(replay < Self.replays.lowerBound ? "too short" : "too long"): from \"1m\" to \"7d\""
        )
      }
    }
    if let node = reader.take("most_flips"), let text = Field.text(node, "gate.most_flips", problems) {
      if let share = Self.share(text) {
        gate.mostFlips = share
        if share >= 1 {
          problems.warn(node.location, "gate.most_flips", "lets every change through: a gate that is never shut")
        }
      } else {
        let meant =
          Self.share(text.filter { $0 != " " } + "%").map { _ in "; did you mean \"\(text.filter { $0 != " " })%\"?" }
          ?? ""
        problems.add(
          node.location, "gate.most_flips",
          "\"\(text)\" is no share of the decisions, such as \"0.5%\": from \"0%\" to \"100%\"\(meant)")
      }
    }
    if let node = reader.take("flips_accepted"), let text = Field.text(node, "gate.flips_accepted", problems) {
      if Self.mark.contains(text.utf8.count), text.allSatisfy(\.isHexDigit), text.utf8.count == text.count {
        gate.accepted = text
      } else {
        problems.add(
          node.location, "gate.flips_accepted",
          "\"\(text)\" names no change: write the 16 digits that the refused reload named")
      }
    }
    return gate
  }

  private static func share(_ text: String) -> Double? {
    guard let match = text.wholeMatch(of: /([0-9]{1,3}(?:\.[0-9]{1,6})?)\s?%/), let percent = Double(match.1),
      percent <= 100
    else { return nil }
    return percent / 100
  }
}
