import MoongateConformance
import MoongateSDK
import Password
import Testing

@Suite("Conformance") struct ConformanceTests {
  @Test("a provider with an identifier and a stored secret conforms") func holds() async {
    var subject = ConformanceSubject(of: Password().descriptor)
    subject.malformedSubmits = [["password": .text("")], ["password": .text(String(repeating: "x", count: 100_000))]]
    let report = await Conformance.run(Password(), subject)
    #expect(report.findings == [])
    let held = report.lines.filter { $0.verdict == .held }.map(\.rule)
    #expect(
      held == [
        .descriptor, .spelling, .facts, .malformed, .proof, .rounds, .askedFields, .beginTwice, .concurrency, .refusals,
        .counted, .wholeAnswer,
        .once, .hashing, .outcomes, .faults, .secrets, .unknown, .timing, .cancellation, .cleanup,
      ])
  }
}
