import MoongateSDK
import Testing

@Suite struct OneTimeCodeTests {
  /// RFC 4226 section 5.4.
  private static let mac: [UInt8] = [
    0x1f, 0x86, 0x98, 0x69, 0x0e, 0x02, 0xca, 0x16, 0x61, 0x85, 0x50, 0xef, 0x7f, 0x19, 0xda, 0x8e, 0x94, 0x5b, 0x55,
    0x5a,
  ]

  @Test(arguments: [(6, "872921"), (8, "57872921"), (10, "1357872921")]) func exampleOfTheStandard(
    _ digits: Int, _ code: String
  ) {
    #expect(OneTimeCode.truncate(Self.mac, digits: digits) == code)
  }

  @Test func smallNumbersHaveLeadingZeros() {
    let mac = [0x80, 0, 0, 7] + [UInt8](repeating: 0, count: 16)
    #expect(OneTimeCode.truncate(mac, digits: 6) == "000007", "the highest bit is dropped")
  }
}
