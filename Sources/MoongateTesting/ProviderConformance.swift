import MoongateConformance
import MoongateSDK
import Testing

/// Runs the conformance suite against a provider inside a test: each finding is an issue of the test.
/// - Parameters:
///   - subject: nil for one made of the descriptor.
///   - needed: rules that must apply: a subject that knows too little makes a suite that finds nothing.
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
