import MoongateCore
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// `policy explain` says why of every refusal, also where neither a rule nor a counter decided.
@Suite struct RefusalCauseTests {
  private func text(_ code: RefusalCode, _ detail: [String: String] = [:]) -> String {
    let event = AuditEvent(
      id: DecisionID(text: "dc_1"), at: ManualClock.start, kind: .refused, code: code.name, detail: detail)
    return Decision(event).text(colour: false)
  }

  @Test(arguments: RefusalCode.all) func everyCodeIsExplained(_ code: RefusalCode) {
    let text = text(code)
    #expect(text.contains("  because    \(code.meaning)"), "\(text)")
    #expect(!text.contains("no counter changed"))
  }

  @Test(arguments: RefusalCause.allCases) func everyCauseIsExplained(_ cause: RefusalCause) {
    #expect(text(.denied, ["cause": cause.rawValue]).contains("  because    \(cause.sentence)"))
  }

  @Test func lockNamesItsOperator() {
    let text = text(
      .disabled,
      [
        "cause": "operator_lock", "locked_by": "desk (moongate account lock)", "locked_at": "2026-11-20T12:00:00Z",
        "locked_reason": "reported stolen", "locked_event": "dc_2",
      ])
    #expect(
      text.contains(
        """
          because    An operator has locked the account.
                     locked 2026-11-20T12:00:00Z by desk (moongate account lock)
                     reason: reported stolen
                     event dc_2
        """), "\(text)")
  }

  /// A rule, a fault or a reason needs no other explanation.
  @Test(arguments: ["rule", "verdict", "fault", "reason"]) func knownReasonIsNotExplainedAgain(_ name: String) {
    #expect(!text(.denied, [name: "x"]).contains("because"))
  }
}
