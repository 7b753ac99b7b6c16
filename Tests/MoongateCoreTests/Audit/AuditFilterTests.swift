import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateCore

/// How an operator's query selects events, and how events are exported to other programs.
@Suite struct AuditFilterTests {
  private static let now = Timestamp(milliseconds: 1_795_000_000_250)

  @Test(arguments: [
    ("90s", 90), ("30m", 1800), ("12h", 43_200), ("7d", 604_800), ("1s", 1),
  ]) func durationsCountBackFromNow(_ text: String, _ seconds: Int64) {
    #expect(Timestamp(since: text, before: Self.now) == Self.now - .seconds(seconds))
  }

  @Test func writtenTimestampsAreRead() {
    for moment in [0, 951_782_399, 1_709_164_800, 1_795_000_000, 4_102_444_799] as [Int64] {
      let stamp = Timestamp(milliseconds: moment * 1000)
      #expect(Timestamp(since: stamp.text, before: Self.now) == stamp, "\(stamp.text)")
    }
  }

  @Test(arguments: [
    "", "7", "d", "0d", "-1d", "+1d", "1.5h", "7 d", "7D", "1w", "1h30m", "yesterday", "2026-11-20",
    "2026-11-20T12:15:00", "2026-11-20T12:15Z",
    "2026-11-20 12:15:00Z", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-11-20T24:00:00Z",
    "2026-11-20T12:60:00Z", "2026-11-20T12:15:61Z",
    "2026-11-20T12:15:00+05:30", "2026-11-20T12:15:00.5Z", "٧d", "99999999999999999999d", "１２３４-11-20T12:15:00Z",
    "2026-1 -20T12:15:00Z",
  ]) func otherFormatsAreRefused(_ text: String) {
    #expect(Timestamp(since: text, before: Self.now) == nil)
    #expect(throws: SinceProblem.unreadable) { try Timestamp.since(text, before: Self.now) }
  }

  @Test func startTimesInTheFutureAreRefused() throws {
    // A clock that is a little ahead is no mistake of the operator's.
    let soon = try #require(Timestamp(since: "2026-11-18T11:07:20Z", before: Self.now))
    #expect(try Timestamp.since(soon.text, before: soon - .seconds(60)) == soon)
    let problem = SinceProblem.future(now: soon - .seconds(61))
    #expect(throws: problem) { try Timestamp.since(soon.text, before: soon - .seconds(61)) }
    #expect(problem.sentence == "is in the future. Times are in UTC, and it is 2026-11-18T11:06:19Z now.")
  }

  @Test func eventIsSentAsOCSF() throws {
    var event = AuditEvent(
      id: DecisionID(text: "dc_1"), at: Self.now, kind: .refused, flow: "login", provider: "phone_otp", account: "ac_1",
      identifier: "hash",
      address: "203.0.113.7", code: "invalid_code",
      detail: ["rule": "limits.verify", "operator": "ravi", "request": "dc_0"])
    event.count = 3
    let text = String(decoding: OCSFEvent(event, service: "Acme").line, as: UTF8.self)
    #expect(
      text == """
        {"category_uid":3,"class_uid":3002,"activity_id":1,"activity_name":"refused","type_uid":300201,"time":1795000000250,"severity_id":1,\
        "status_id":2,"status":"Failure","status_code":"invalid_code","status_detail":"limits.verify","count":3,\
        "metadata":{"version":"1.3.0","uid":"dc_1","correlation_uid":"dc_0","product":{"name":"Moongate","vendor_name":"Moongate"}},\
        "user":{"uid":"ac_1","uid_alt":"hash"},"src_endpoint":{"ip":"203.0.113.7"},"actor":{"user":{"name":"ravi"}},"auth_protocol":"phone_otp",\
        "service":{"name":"Acme"},"unmapped":{"flow":"login","detail.operator":"ravi","detail.request":"dc_0","detail.rule":"limits.verify"}}
        """)
  }

  /// Attack: a value chosen by a client ends the line and forges another event in the file.
  @Test func valuesCannotEndALine() {
    let event = AuditEvent(
      id: DecisionID(text: "dc_1"), at: Self.now, kind: .refused, address: "x\n{\"class_uid\":3002}",
      detail: ["fault": "a\r\nb\u{2028}c"])
    #expect(!OCSFEvent(event, service: "A\nB").line.contains { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") })
  }

  @Test func activityFollowsTheKindOfTheEvent() {
    #expect(
      OCSFEvent(AuditEvent(id: DecisionID(text: "a"), at: Self.now, kind: .sessionEnded), service: "").activity
        == .logoff)
    #expect(
      OCSFEvent(AuditEvent(id: DecisionID(text: "a"), at: Self.now, kind: .sessionStarted), service: "").activity
        == .logon)
    #expect(
      OCSFEvent(AuditEvent(id: DecisionID(text: "a"), at: Self.now, kind: .accountLocked), service: "").activity
        == .other)
  }

  @Test func operatorNamesAreStrippedOfControlCharacters() {
    let identity = OperatorIdentity(name: "ravi\n2026 notice security: account_unlocked\u{1b}[2J", tool: "test")
    #expect(identity.name == "ravi2026 notice security: account_unlocked[2J")
    #expect(OperatorIdentity(name: String(repeating: "x", count: 500), tool: "test").name?.count == 100)
  }

  /// A refusal names its account; a folded flood over several accounts names none.
  @Test func foldedRefusalsOfSeveralAccountsNameNone() {
    var folds = RefusalFolds()
    func refusal(_ number: Int, account: String?) -> AuditEvent {
      AuditEvent(
        id: DecisionID(text: "dc_\(number)"), at: Self.now, kind: .refused, account: account, identifier: account,
        address: "192.0.2.1",
        code: "invalid_pin")
    }
    _ = folds.end(before: Self.now)
    for number in 0..<RefusalFolds.singles { #expect(folds.take(refusal(number, account: "ac_1")) == .single) }
    for number in 20..<25 { _ = folds.take(refusal(number, account: "ac_1")) }
    #expect(folds.fold(DecisionID(text: "dc_20"))?.account == "ac_1")
    _ = folds.take(refusal(30, account: "ac_2"))
    let fold = folds.fold(DecisionID(text: "dc_20"))
    #expect(fold?.account == nil && fold?.identifier == nil && fold?.count == 6)
  }
}
