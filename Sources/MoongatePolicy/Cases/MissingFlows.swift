import MoongateCore
import MoongateSDK

/// The flows that cases begin and that the folder does not have. Each becomes one problem, however many cases begin it.
final class MissingFlows {
  private var places: [String: [SourceLocation]] = [:]

  func add(_ flow: String, at location: SourceLocation) { places[flow, default: []].append(location) }

  /// Adds a problem for each flow, at the first place that begins it.
  /// - Parameter flows: the flows of the folder.
  func report(among flows: [String], to problems: Problems) {
    for (name, places) in places.sorted(by: { $0.key < $1.key }) {
      guard let first = places.first else { continue }
      let phrase = Suggestion.phrase(for: name, among: flows)
      let similar = phrase.hasPrefix("; did you mean") ? phrase : ""
      let others = places.dropFirst().map(\.description)
      let more = others.isEmpty ? "" : ". \(others.joined(separator: ", ")) begin it too"
      let advice = similar.isEmpty ? ": remove the cases that begin it, or bring the flow back" : ""
      problems.add(first, "flow", "there is no flows/\(name).lua\(similar)\(advice)\(more)")
    }
  }
}
