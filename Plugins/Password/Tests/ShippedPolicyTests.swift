import MoongateSDK
import Password
import Testing

/// Checks the text of the default policy. MoongatePolicy's tests check that the loader reads it correctly.
@Suite("The default policy") struct ShippedPolicyTests {
  @Test(
    "counts per identifier, account and network address, locks longer each time, and does not reveal accounts",
    arguments: [
      #"per = "email", max = 5, window = "24h", counts = "failures", lock = { "15m", "1h", "6h", "24h" }"#,
      #"per = "account", max = 5, window = "24h", counts = "failures", lock = { "15m", "1h", "6h", "24h" }"#,
      #"per = "ip", max = 100, window = "1h", counts = "failures""#,
      #"max = 100, counts = "consecutive_failures", lock = { "1h", "6h", "24h" }"#,
      #"unknown_account = "conceal""#,
    ])
  func numbers(said: String) {
    #expect(
      Password().descriptor.policy.text.split(whereSeparator: \.isWhitespace).joined(separator: " ").contains(said))
  }

  @Test("declares its fields") func descriptor() {
    let descriptor = Password().descriptor
    #expect(descriptor.name.rawValue == "password")
    #expect(descriptor.beginFields.map(\.name) == ["email", "first_name", "last_name"])
    #expect(descriptor.beginFields.allSatisfy { !$0.isRequired })
    #expect(descriptor.submitFields.map(\.name) == ["password"])
    #expect(descriptor.identifierKinds == [.email] && descriptor.hashesSecrets && descriptor.secretSpace == nil)
  }
}
