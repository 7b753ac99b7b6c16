import MoongateCore
import MoongateSDK

/// Static checks of a flow's steps.
enum FlowAnalysis {
  /// - Parameters:
  /// - purpose: the purpose of the flow. A flow that begins with a session may have only skippable steps.
  /// - node: the list that the steps were read from, with one item each.
  static func check(_ purpose: FlowPurpose, _ steps: [StepRule], of node: LuaNode, _ problems: Problems) {
    guard !steps.isEmpty else { return }
    if purpose.needsSession {
      warnOfRepeats(steps, of: node, problems)
      return
    }
    if steps.allSatisfy(\.isSkippable) {
      problems.add(
        node.location, "steps",
        "every step is skippable, so the flow would verify nothing: remove `skippable` from at least one step")
    } else if steps.allSatisfy({ $0.isSkippable || $0.when != nil }) {
      problems.warn(
        node.location, "steps", "every step has `when` or is skippable: if none of them runs, the flow verifies nothing"
      )
    }
    warnOfRepeats(steps, of: node, problems)
  }

  /// Warns of a step whose choices must all have been passed by earlier steps.
  private static func warnOfRepeats(_ steps: [StepRule], of node: LuaNode, _ problems: Problems) {
    guard case .table(let table) = node.value else { return }
    var proved: [ProviderName: Int] = [:]
    for (index, step) in steps.enumerated() {
      if let first = step.choices.compactMap({ proved[$0] }).min(), step.choices.allSatisfy({ proved[$0] != nil }) {
        let location = index < table.items.count ? table.items[index].location : node.location
        problems.warn(
          location, "steps[\(index + 1)]",
          "repeats steps[\(first)], which has been passed by then (\(Suggestion.list(step.choices.map(\.rawValue)))): remove it"
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
