import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

/// The JSON documents that clients get for refusals.
@Suite struct RefusalDocumentTests {
  static let decision = DecisionID(text: "dc_test")

  @Test func everyMember() throws {
    let refusal = Refusal(
      .resendTooSoon, decision: Self.decision, detail: "\"Wait\"\\\n\u{7f}é", field: "phone", attemptsLeft: 4,
      retryAfter: .milliseconds(44_001),
      resendAt: ManualClock.start, provider: ProviderName(test: "pin"), flow: "step_up")
    let read = try #require(
      try JSONSerialization.jsonObject(with: Data(refusal.document(with: ["flow_id": "fl_x"]))) as? [String: Any])
    #expect(read["type"] as? String == "urn:moongate:problem:resend_too_soon")
    #expect(read["title"] as? String == "Too soon for another code")
    #expect(read["status"] as? Int == 429)
    #expect(read["detail"] as? String == "\"Wait\"\\\n\u{7f}é")
    #expect(read["code"] as? String == "resend_too_soon")
    #expect(read["decision_id"] as? String == "dc_test")
    #expect(read["attempts_left"] as? Int == 4)
    #expect(read["retry_after"] as? Int == 45)
    #expect(read["resend_at"] as? String == "2026-11-20T12:00:00Z")
    #expect(read["field"] as? String == "phone")
    #expect(read["provider"] as? String == "pin")
    #expect(read["flow"] as? String == "step_up")
    #expect(read["flow_id"] as? String == "fl_x")
  }

  @Test func onlyWhatApplies() throws {
    let read = try #require(
      try JSONSerialization.jsonObject(with: Data(Refusal(.notFound, decision: Self.decision).document()))
        as? [String: Any])
    #expect(read.keys.sorted() == ["code", "decision_id", "detail", "status", "title", "type"])
  }

  @Test(arguments: [
    (Duration.milliseconds(1), "1 second"), (.seconds(59), "59 seconds"), (.seconds(60), "1 minute"),
    (.seconds(61), "2 minutes"),
    (.seconds(900), "15 minutes"), (.milliseconds(899_001), "15 minutes"), (.seconds(3600), "1 hour"),
    (.seconds(3601), "2 hours"),
    (.seconds(21_600), "6 hours"), (.seconds(86_400), "24 hours"), (.seconds(172_800), "48 hours"),
  ])
  func lengthsAreSpoken(_ length: Duration, _ words: String) {
    #expect(
      Refusal(.tooManyAttempts, decision: Self.decision, retryAfter: length).sentence
        == "Too many attempts. Please try again in \(words).")
  }

  @Test(arguments: [
    (Int64(0), "1970-01-01T00:00:00Z"), (951_782_399_999, "2000-02-28T23:59:59Z"),
    (951_782_400_000, "2000-02-29T00:00:00Z"),
    (951_868_800_000, "2000-03-01T00:00:00Z"), (1_795_176_000_000, "2026-11-20T12:00:00Z"),
    (-1, "1969-12-31T23:59:59Z"),
    (4_102_444_800_000, "2100-01-01T00:00:00Z"), (253_402_300_799_000, "9999-12-31T23:59:59Z"),
  ])
  func moments(_ milliseconds: Int64, _ text: String) { #expect(Timestamp(milliseconds: milliseconds).text == text) }
}
