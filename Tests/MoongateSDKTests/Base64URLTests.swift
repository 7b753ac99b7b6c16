import MoongateSDK
import Testing

/// The encodings themselves are tested in KeyRingTests.
@Suite struct Base64URLTests {
  @Test func alphabetIsTheDecodableBytes() {
    for byte in UInt8.min...127 {
      let text = String(Character(Unicode.Scalar(byte))) + "A"
      #expect(Base64URL.contains(byte) == (Base64URL.decode(text) != nil), "\(byte)")
    }
    for byte in UInt8(128)...UInt8.max { #expect(!Base64URL.contains(byte)) }
  }
}
