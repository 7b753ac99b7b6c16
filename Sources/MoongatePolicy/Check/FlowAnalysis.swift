import MoongateCore
import MoongateSDK

/// What can be told of a flow without running it.
enum FlowAnalysis {
  /// - Parameters:
  ///   - purpose: the flow's. One that begins with a session may prove nothing more: it is "Skip for now".
  ///   - node: the list that the steps were read from, one item each.
  static func check(_ purpose: FlowPurpose, _ steps: [StepRule], of node: LuaNode, _ problems: Problems) {
    guard !steps.isEmpty else { return }
    if purpose.needsSession {
      warnOfRepeats(steps, of: node, problems)
      return
    }
    if steps.allSatisfy(\.isSkippable) {
      problems.add(
        node.location, "steps",
        "every step may be skipped, so the flow would prove nothing: let one be there without `skippable`")
    } else if steps.allSatisfy({ $0.isSkippable || $0.when != nil }) {
      problems.warn(
        node.location, "steps", "every step has `when` or may be skipped: where none is taken, the flow proves nothing")
    }
    warnOfRepeats(steps, of: node, problems)
  }

  /// A step that offers nothing but what must have been passed before it comes.
  private static func warnOfRepeats(_ steps: [StepRule], of node: LuaNode, _ problems: Problems) {
    guard case .table(let table) = node.value else { return }
    var proved: [ProviderName: Int] = [:]
    for (index, step) in steps.enumerated() {
      if let first = step.choices.compactMap({ proved[$0] }).min(), step.choices.allSatisfy({ proved[$0] != nil }) {
        let location = index < table.items.count ? table.items[index].location : node.location
        problems.warn(
          location, "steps[\(index + 1)]",
          "asks again for what steps[\(first)] has proved by then (\(Suggestion.list(step.choices.map(\.rawValue)))): remove it"
        )
      }
      if let only = step.choices.first, step.choices.count == 1, !step.isSkippable, step.when == nil,
        proved[only] == nil
      {
        proved[only] = index + 1
      }
    }
  }
}
