import MoongateSDK
import PIN
import Testing

/// Checks the text of the default policy. MoongatePolicy's tests check that the loader reads it correctly.
@Suite("The default policy") struct ShippedPolicyTests {
  @Test(
    "counts per account, locks longer each time, and limits consecutive failures",
    arguments: [
      #"max = 5, window = "24h", counts = "failures", lock = { "15m", "1h", "6h", "24h" }"#,
      #"max = 100, counts = "consecutive_failures", lock = { "1h", "6h", "24h" }"#, #"unknown_account = "conceal""#,
    ])
  func numbers(said: String) {
    #expect(PIN().descriptor.policy.text.split(whereSeparator: \.isWhitespace).joined(separator: " ").contains(said))
  }

  @Test("declares its fields") func descriptor() {
    let descriptor = PIN().descriptor
    #expect(descriptor.name.rawValue == "pin")
    #expect(descriptor.beginFields.isEmpty && descriptor.settings.isEmpty && descriptor.identifierKinds.isEmpty)
    #expect(descriptor.submitFields.map(\.name) == ["pin", "new_pin"])
    #expect(descriptor.hashesSecrets)
    #expect(descriptor.secretSpace == 901_441)
  }
}
