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
    AuditEvent(
      id: DecisionID(text: "dc_2"), at: ManualClock.start, kind: .sessionStarted, address: "192.0.2.7"
    ).located(by: Places()),
  ]

  /// 192.0.2.7 is in India.
  struct Places: ClientPlaces {
    func place(of address: ClientAddress) -> ClientPlace {
      address.bytes == [192, 0, 2, 7] ? ClientPlace(country: "IN", asn: 64_500) : ClientPlace()
    }
  }

  @Test func eventsSayWhereTheirAddressIs() {
    var event = AuditEvent(id: DecisionID(text: "dc_1"), at: ManualClock.start, kind: .refused, address: "192.0.2.7")
    let located = event.located(by: Places())
    #expect(located.country == "IN" && located.asn == 64_500)
    #expect(located.located(by: nil) == located && event.located(by: nil) == event)
    #expect(located.anonymous.country == nil && located.anonymous.asn == nil, "as the address")
    for address in ["192.0.2.8", "rubbish", nil] {
      event.address = address
      #expect(event.located(by: Places()) == event)
    }
    let line = String(decoding: OCSFEvent(located, service: "Acme").line, as: UTF8.self)
    #expect(
      line.contains(
        #""src_endpoint":{"ip":"192.0.2.7","location":{"country":"IN"},"autonomous_system":{"number":64500}}"#),
      "\(line)")
  }

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
