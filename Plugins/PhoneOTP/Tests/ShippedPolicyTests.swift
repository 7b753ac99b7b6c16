import MoongateSDK
import PhoneOTP
import Testing

/// Checks the text of the default policy. MoongatePolicy's tests check that the loader reads it correctly.
@Suite("The default policy") struct ShippedPolicyTests {
  @Test(
    "has the expected numbers",
    arguments: [
      #"length = 6, alphabet = "digits", ttl = "10m""#, #"resend_after = { "60s", "120s" }"#,
      #"max = 4, window = "15m""#,
      #"max = 5, window = "24h", counts = "failures", lock = { "15m", "1h", "6h", "24h" }"#,
      #"unknown_account = "reveal""#,
      #"message = "{code} is your {service} verification code""#,
    ])
  func numbers(said: String) {
    let text = PhoneOTP().descriptor.policy.text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    #expect(text.contains(said))
  }

  @Test("declares its fields and settings") func descriptor() {
    let descriptor = PhoneOTP().descriptor
    #expect(descriptor.name.rawValue == "phone_otp")
    #expect(descriptor.beginFields.map(\.name) == ["phone", "region"])
    #expect(descriptor.submitFields.map(\.name) == ["code"])
    #expect(descriptor.settings.map(\.name) == ["sms"])
    #expect(descriptor.identifierKinds == [.phone])
  }
}
