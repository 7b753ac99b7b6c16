import MoongateSDK
import Testing

@Suite struct Base32Tests {
  /// RFC 4648 section 10, without padding.
  @Test(
    arguments: [
      ("", ""), ("f", "MY"), ("fo", "MZXQ"), ("foo", "MZXW6"), ("foob", "MZXW6YQ"), ("fooba", "MZXW6YTB"),
      ("foobar", "MZXW6YTBOI"),
    ])
  func vectorsOfTheStandard(_ text: String, _ encoded: String) {
    #expect(Base32.encode(text.utf8) == encoded)
    #expect(Base32.decode(encoded) == Array(text.utf8))
    #expect(Base32.decode(encoded + "======") == Array(text.utf8))
  }

  @Test func allBytesDecodeToThemselves() {
    let bytes = Array(UInt8.min...UInt8.max)
    #expect(Base32.decode(Base32.encode(bytes)) == bytes)
  }

  @Test func keysAreDecodedAsUsersTypeThem() {
    #expect(Base32.decode("MZXW 6YTB-oi") == Array("foobar".utf8))
    #expect(Base32.decode("my======") == [0x66])
    #expect(Base32.decode("MZ") == [0x66], "unused bits are ignored")
  }

  @Test(arguments: ["M1", "M0", "M8", "M9", "M_", "M+", "M\n", "Mß", "Mı"]) func otherCharactersAreRefused(
    _ text: String
  ) {
    #expect(Base32.decode(text) == nil)
  }

  @Test func theAlphabetIsInUpperCase() {
    let alphabet = (UInt8.min...UInt8.max).filter(Base32.contains)
    #expect(String(decoding: alphabet, as: UTF8.self) == "234567ABCDEFGHIJKLMNOPQRSTUVWXYZ")
  }
}
