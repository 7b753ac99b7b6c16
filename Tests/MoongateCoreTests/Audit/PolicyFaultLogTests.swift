import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateCore

/// How failing policies are logged.
@Suite struct PolicyFaultLogTests {
  private let clock = ManualClock()
  private let log = CapturedLog()

  private func fault(line: Int, _ message: String = "broken", kind: PolicyFault.Kind = .error) -> PolicyFault {
    PolicyFault(kind: kind, location: SourceLocation(file: "routes.lua", line: line), message: message)
  }

  private func report(_ faults: FoldedLog<LoggedPolicyFault>, _ fault: PolicyFault, _ decision: String = "dc_1") {
    faults.report(fault, rule: "routes[2].decide", decision: DecisionID(text: decision))
  }

  /// Attack: requests without end, each of which writes a line to the log.
  @Test func eachErrorIsLoggedOnceAMinuteWithACount() {
    let faults = FoldedLog<LoggedPolicyFault>(logger: log.logger, clock: clock)
    for index in 0..<1_000 { report(faults, fault(line: 9, "broken at \(index)")) }
    report(faults, fault(line: 10))
    report(faults, fault(line: 9, kind: .steps))
    #expect(
      log.lines == [
        "error a policy failed decision=dc_1 fault=routes.lua:9: broken at 0 rule=routes[2].decide",
        "error a policy failed decision=dc_1 fault=routes.lua:10: broken rule=routes[2].decide",
        "error a policy failed decision=dc_1 fault=routes.lua:9: broken rule=routes[2].decide",
      ])
    clock.advance(by: .seconds(60))
    report(faults, fault(line: 9), "dc_2")
    #expect(
      log.lines.last
        == "error a policy failed decision=dc_2 fault=routes.lua:9: broken rule=routes[2].decide suppressed=999")
  }

  @Test func suppressedErrorsAreLoggedAfterTheMinute() {
    let faults = FoldedLog<LoggedPolicyFault>(logger: log.logger, clock: clock)
    for _ in 0..<5 { report(faults, fault(line: 9)) }
    report(faults, fault(line: 10))
    faults.logSuppressed()
    #expect(log.lines.count == 2)
    clock.advance(by: .seconds(60))
    faults.logSuppressed()
    faults.logSuppressed()
    #expect(log.lines.dropFirst(2) == ["error a policy kept failing fault=routes.lua:9: broken suppressed=4"])
  }

  @Test func logMemoryIsBounded() {
    let faults = FoldedLog<LoggedPolicyFault>(logger: log.logger, clock: clock)
    for line in 1...3_000 { report(faults, fault(line: line)) }
    #expect(log.lines.count == 1_000)
    #expect(log.lines.allSatisfy { $0.utf8.count < 600 })
    report(
      FoldedLog<LoggedPolicyFault>(logger: log.logger, clock: clock),
      fault(line: 1, String(repeating: "x", count: 5_000)))
    #expect(log.lines.last?.utf8.count ?? 0 < 700)
  }
}
