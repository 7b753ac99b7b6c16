import MoongateConformance
import MoongateSDK
import Testing

@testable import TOTP

@Suite("Conformance") struct ConformanceTests {
  @Test("a provider of time-based codes conforms") func holds() async {
    var subject = ConformanceSubject(of: TOTP().descriptor)
    subject.setsUp = true
    // Wrong: a code from an hour ago.
    subject.answers(
      right: ["code": .totp(TOTPRecipe(of: "key"))], wrong: ["code": .totp(TOTPRecipe(of: "key", offset: -120))])
    subject.malformedSubmits = [
      ["code": .text("12345")], ["code": .text("12345x")], ["code": .other], ["recovery_code": .text("ABCDE-FGH23")],
    ]
    subject.isOneTime = true
    // Its own period and the next one.
    subject.lifetime = .milliseconds(2 * TimeCode.period)
    let report = await Conformance.run(TOTP(), subject)
    #expect(report.findings == [])
    let held = report.lines.filter { $0.verdict == .held }.map(\.rule)
    #expect(
      held == [
        .descriptor, .malformed, .proof, .rounds, .askedFields, .beginTwice, .expiry, .concurrency, .refusals, .counted,
        .wholeAnswer, .once,
        .hashing,
        .outcomes, .faults, .secrets, .cancellation, .cleanup,
      ])
  }
}
