import MoongateSDK
import Testing

@Suite struct HexTests {
  @Test func eachByteHasTwoDigitsInLowerCase() {
    #expect(Hex.encode([UInt8]()) == "")
    #expect(Hex.encode([0x00, 0x0f, 0x10, 0xab, 0xff]) == "000f10abff")
  }
}
