import MoongateConformance
import MoongateSDK
import PIN
import Testing

@Suite("Conformance") struct ConformanceTests {
  @Test("a provider with a stored secret conforms") func holds() async {
    var subject = ConformanceSubject(of: PIN().descriptor)
    subject.malformedSubmits = [
      "", "12345", "1234567", "12345a", "12 345", "12345\u{0}",
    ].map {
      ["pin": .text($0)]
    }
    subject.identifiers = [Identifier(kind: .phone, value: "+919876543210", display: "+91 98765 43210")]
    let report = await Conformance.run(PIN(), subject)
    #expect(report.findings == [])
    let held = report.lines.filter { $0.verdict == .held }.map(\.rule)
    #expect(
      held == [
        .descriptor, .malformed, .proof, .rounds, .askedFields, .beginTwice, .concurrency, .refusals, .counted,
        .wholeAnswer, .once, .hashing,
        .outcomes,
        .faults, .secrets, .cancellation, .cleanup,
      ])
  }
}
