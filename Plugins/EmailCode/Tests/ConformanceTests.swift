import EmailCode
import MoongateConformance
import Testing

@Suite("Conformance") struct ConformanceTests {
  @Test("a code provider conforms") func holds() async {
    let report = await Conformance.run(EmailCode())
    #expect(report.findings == [])
    let held = report.lines.filter { $0.verdict == .held }.map(\.rule)
    #expect(
      held == [
        .descriptor, .spelling, .facts, .malformed, .delivery, .beginTwice, .faults, .secrets, .cancellation, .cleanup,
      ])
  }
}
