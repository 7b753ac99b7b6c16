import MoongateCore

/// Reads `gate = { replay = "24h", most_flips = "0.5%", flips_accepted = "…" }`.
struct GateReader {
  /// A longer span has too many recorded decisions to replay during a reload.
  private static let replays: ClosedRange<Duration> = .seconds(60)...(.seconds(7 * 86_400))
  /// The number of hexadecimal digits. 16 are enough to avoid collisions between changes.
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
          problems.warn(node.location, "gate.most_flips", "allows every change, so the gate never refuses a reload")
        }
      } else {
        let meant =
          Self.share(text.filter { $0 != " " } + "%").map { _ in "; did you mean \"\(text.filter { $0 != " " })%\"?" }
          ?? ""
        problems.add(
          node.location, "gate.most_flips",
          "\"\(text)\" is not a share of the decisions, such as \"0.5%\": from \"0%\" to \"100%\"\(meant)")
      }
    }
    if let node = reader.take("flips_accepted"), let text = Field.text(node, "gate.flips_accepted", problems) {
      if Self.mark.contains(text.utf8.count), text.allSatisfy(\.isHexDigit), text.utf8.count == text.count {
        gate.accepted = text
      } else {
        problems.add(
          node.location, "gate.flips_accepted",
          "\"\(text)\" is not the id of a change: write the 16 digits from the message of the refused reload")
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
