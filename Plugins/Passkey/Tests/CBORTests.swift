import MoongateSDK
import Testing

@testable import Passkey

/// The CBOR decoder must handle arbitrary bytes.
@Suite struct CBORTests {
  @Test(
    arguments: [
      ([0x00], CBORValue.integer(0)), ([0x17], .integer(23)), ([0x18, 0x18], .integer(24)),
      ([0x19, 0x01, 0x00], .integer(256)),
      ([0x1b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], .integer(.max)), ([0x20], .integer(-1)),
      ([0x26], .integer(-7)),
      ([0x3b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], .integer(.min)), ([0x42, 1, 2], .bytes([1, 2])),
      ([0x61, 0x61], .text("a")),
      ([0x82, 0x01, 0xf5], .list([.integer(1), .flag(true)])), ([0xa1, 0x61, 0x61, 0xf6], .map([.text("a"): .null])),
      ([0xf4], .flag(false)),
    ] as [([UInt8], CBORValue)])
  func validCBORIsRead(_ bytes: [UInt8], _ value: CBORValue) throws {
    #expect(try CBORReader.read(bytes) == value)
  }

  @Test(
    arguments: [
      ([], CBORFault.short), ([0x18], .short), ([0x42, 1], .short), ([0x82, 1], .short), ([0xa1, 1], .short),
      // Lengths beyond the input must not cause an allocation.
      ([0x5b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], .short),
      ([0x9b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], .short),
      ([0xbb, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], .short), ([0x9a, 0xff, 0xff, 0xff, 0xff, 0x00], .short),
      // Not the shortest form.
      ([0x18, 0x17], .number), ([0x19, 0x00, 0xff], .number), ([0x1a, 0, 0, 0xff, 0xff], .number),
      ([0x58, 0x01, 0x00], .number),
      ([0x1b, 0x80, 0, 0, 0, 0, 0, 0, 0], .number), ([0x3b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], .number),
      // Indefinite lengths, reserved lengths, tags, floating-point numbers, other simple values, trailing bytes.
      ([0x5f, 0xff], .unsupported), ([0x9f, 0xff], .unsupported), ([0xbf, 0xff], .unsupported), ([0x1c], .unsupported),
      ([0xc0, 0x00], .unsupported),
      ([0xf9, 0x7e, 0x00], .unsupported), ([0xf7], .unsupported), ([0xf8, 0x20], .unsupported),
      ([0x00, 0x00], .unsupported),
      ([0x61, 0xff], .text), ([0xa2, 1, 2, 1, 3], .key), ([0xa1, 0x41, 0x61, 0x01], .key), ([0xa1, 0xf5, 0x01], .key),
      ([0x81, 0x81, 0x81, 0x81, 0x81, 0x01], .depth),
    ] as [([UInt8], CBORFault)])
  func invalidCBORIsRefused(_ bytes: [UInt8], _ fault: CBORFault) {
    #expect(throws: fault) { try CBORReader.read(bytes) }
  }

  /// Attack: arbitrary bytes. The decoders must return for all of them, because a trap would end the gateway.
  @Test func decodersReturnForArbitraryBytes() throws {
    var random = Lehmer(state: 20_261_123)
    let key = SoftAuthenticator()
    let object = CBORText.map([
      (.text("fmt"), .text("none")), (.text("attStmt"), .map([])),
      (.text("authData"), .bytes([UInt8](repeating: 1, count: 60))),
    ]).bytes
    let cose = try key.key.cose().bytes
    let data =
      [UInt8](repeating: 3, count: 32) + [0xc5, 0, 0, 0, 1] + [UInt8](repeating: 0, count: 16) + [0, 4, 1, 2, 3, 4]
      + cose + CBORText.map([]).bytes
    var read = 0
    for round in 0..<100_000 {
      var bytes = [object, cose, data][round % 3]
      for _ in 0...Int(random.next() % 4) {
        let at = Int(random.next() % UInt64(bytes.count))
        switch random.next() % 4 {
        case 0: bytes[at] = UInt8(truncatingIfNeeded: random.next())
        case 1: bytes[at] ^= 1 << UInt8(random.next() % 8)
        case 2: bytes.remove(at: at)
        default: bytes.insert(UInt8(truncatingIfNeeded: random.next()), at: at)
        }
      }
      if (try? CBORReader.read(bytes)) != nil { read += 1 }
      if AuthenticatorData(bytes) != nil { read += 1 }
      _ = PublicKey(cose: bytes)
    }
    #expect(read > 1_000, "part of it is still well formed")
  }

  /// A deterministic random generator.
  private struct Lehmer: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return state >> 24
    }
  }

  @Test func onlyCanonicalBase64URLIsDecoded() {
    #expect(
      Base64URL.decode("AAE") == [0, 1] && Base64URL.encode([0xff, 0xfe]) == "__4" && Base64URL.decode("") == [])
    for text in ["AAE=", "AA E", "AAF", "A", "+/8", "ÄÄ", "AAE\n"] { #expect(Base64URL.decode(text) == nil, "\(text)") }
  }
}
