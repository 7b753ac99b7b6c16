import MoongateSDK
import Testing

@Suite struct PercentEncodingTests {
  /// RFC 3986 section 2.3: unreserved characters are kept, all others are encoded.
  @Test func leavesUnreservedCharacters() {
    let unreserved = "ABCXYZabcxyz0189-._~"
    #expect(PercentEncoding.encode(unreserved) == unreserved)
    for byte in UInt8(0x20)...0x7e {
      let character = String(UnicodeScalar(byte))
      let isPlain = character.allSatisfy { $0.isLetter || $0.isNumber || "-._~".contains($0) }
      #expect(
        PercentEncoding.encode(character) == (isPlain ? character : "%" + String(byte, radix: 16, uppercase: true)),
        "\(character)")
    }
  }

  @Test func encodesTheBytesOfOthers() {
    #expect(PercentEncoding.encode("é \u{0}+\n") == "%C3%A9%20%00%2B%0A")
    #expect(PercentEncoding.encode("") == "")
  }

  /// Attack: a value that contains `&` or `=` adds another field.
  @Test func valuesCannotAddFields() {
    #expect(PercentEncoding.form([("a", "1&b=2"), ("c", "")]) == "a=1%26b%3D2&c=")
  }

  @Test func readsTheFieldsOfAForm() {
    #expect(
      PercentEncoding.fields(in: "a=1%26b+%c3%A9&c=&d&=e=f&&".utf8) == ["a": "1&b é", "c": "", "d": "", "": "e=f"])
    #expect(PercentEncoding.fields(in: "".utf8) == [:])
  }

  /// Attack: two programs read different values from one text.
  @Test(arguments: ["a=1&a=2", "a=1&%61=1", "a=%", "a=%4", "a=%g0", "a=%ff", "a=%00", "a=%0A", "a=\u{7f}", "%=1"])
  func refusesAnAmbiguousForm(text: String) {
    #expect(PercentEncoding.fields(in: text.utf8) == nil)
  }

  @Test func readsASegmentOfAPath() {
    #expect(PercentEncoding.decodeSegment("%2B91+a%40b%c3%a9%0A") == "+91+a@bé\n")
    for text in ["%", "%4", "%g0", "%ff"] { #expect(PercentEncoding.decodeSegment(text) == nil) }
  }
}
