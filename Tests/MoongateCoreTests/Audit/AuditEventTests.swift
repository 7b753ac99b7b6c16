import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

/// The stored JSON of audit events.
@Suite struct AuditEventTests {
  static let events = [
    AuditEvent(id: DecisionID(text: "dc_1"), at: ManualClock.start, kind: .refused),
    AuditEvent(
      id: DecisionID(text: "dc_\"\\"), at: Timestamp(milliseconds: -1), kind: .codeVerified, flow: "lo\u{0}gin",
      flowPrefix: "fl_\u{2028}\u{7f}",
      provider: ProviderName(test: "pin"), account: "ac_é", identifier: "\u{1F319}", address: "::1", code: "a\nb",
      detail: ["rule": "policies/pin.lua:3", "x\"": "\t\r\n/\u{1b}"]),
  ]

  @Test(arguments: events) func encodedEventDecodesToTheSameEvent(event: AuditEvent) throws {
    #expect(try JSONDecoder().decode(AuditEvent.self, from: Data(event.json)) == event)
  }

  /// Our JSON equals what `JSONEncoder` writes: rows of both kinds may stand in one store.
  @Test(arguments: events) func jsonEqualsThatOfJSONEncoder(event: AuditEvent) throws {
    let ours = try JSONSerialization.jsonObject(with: Data(event.json)) as? NSDictionary
    let encoders = try JSONSerialization.jsonObject(with: JSONEncoder().encode(event)) as? NSDictionary
    #expect(ours != nil && ours == encoders)
  }
}
