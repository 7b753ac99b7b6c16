import MoongateConformance
import MoongateSDK
import Testing

/// Runs the conformance suite against a provider in a test. Each finding is recorded as an issue.
/// - Parameters:
///   - subject: nil to create one from the descriptor.
///   - needed: rules that must apply. An incomplete subject would make the suite find nothing.
package func expectConformance(
  _ provider: any Provider, _ subject: ConformanceSubject? = nil, applying needed: Set<ConformanceRule> = [],
  sourceLocation: SourceLocation = #_sourceLocation
) async {
  let report = await Conformance.run(provider, subject)
  for finding in report.findings { Issue.record("\(report.provider): \(finding)", sourceLocation: sourceLocation) }
  for line in report.lines where needed.contains(line.rule) {
    if case .doesNotApply(let why) = line.verdict {
      Issue.record(
        "\(report.provider): the rule \(line.rule.rawValue) does not apply: \(why)", sourceLocation: sourceLocation)
    }
  }
}
