import Glibc
import Testing

@testable import MoongateSDK

struct IPAddressBytesTests {
  /// The oracle is the system's function, which is as strict.
  private static func system(_ text: [UInt8]) -> [UInt8]? {
    guard !text.contains(0) else { return nil }
    var address = in_addr()
    let terminated = text.map { CChar(bitPattern: $0) } + [0]
    guard inet_pton(AF_INET, terminated, &address) == 1 else { return nil }
    return withUnsafeBytes(of: &address) { Array($0) }
  }

  @Test(arguments: [
    "0.0.0.0", "255.255.255.255", "203.0.113.7", "256.0.0.1", "1.2.3", "1.2.3.", ".1.2.3", "1..2.3", "1.2.3.4.5", "",
    "01.2.3.4", "1.2.3.04", "1.2.3.00", "0x1.2.3.4", "1.2.3.4 ", " 1.2.3.4", "1.2.3.4\u{0}", "+1.2.3.4", "1.2.3.-4",
    "1", "16909060", "1.2.3.4294967296", "1.2.3.99999999999999999999", "\u{661}.2.3.4", "1,2.3.4",
    "1.2.3.4/32", "::1",
  ])
  func anAddressIsReadAsBySystem(text: String) {
    let bytes = Array(text.utf8)
    #expect(IPAddressBytes.parseV4(bytes) == Self.system(bytes))
    #expect(IPAddressBytes.parseV4(bytes.span) == Self.system(bytes))
  }

  @Test func randomTextsAreReadAsBySystem() {
    var random = SystemRandomNumberGenerator()
    let letters = Array("0011223456789.....x ".utf8)
    var read = 0
    for _ in 0..<50_000 {
      // Half of them are addresses in which up to one byte is changed.
      var text =
        Bool.random(using: &random)
        ? (0..<Int.random(in: 0...16, using: &random)).map { _ in letters.randomElement(using: &random)! }
        : Array((0..<4).map { _ in String(Int.random(in: 0...300, using: &random)) }.joined(separator: ".").utf8)
      if !text.isEmpty, Bool.random(using: &random) {
        text[Int.random(in: text.indices, using: &random)] = letters.randomElement(using: &random)!
      }
      let expected = Self.system(text)
      if expected != nil { read += 1 }
      #expect(IPAddressBytes.parseV4(text.span) == expected, "\(String(decoding: text, as: UTF8.self))")
    }
    #expect(read > 1_000)
  }
}
