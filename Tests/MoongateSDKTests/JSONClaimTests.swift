import MoongateSDK
import Testing

@Suite struct JSONClaimTests {
  @Test(
    arguments: [
      ("0", .number(0)), ("-0.5", .number(-0.5)), ("12", .number(12)), ("1e3", .number(1_000)),
      ("1.5E+2", .number(150)),
      ("9007199254740991", .number(9_007_199_254_740_991)), ("9007199254740993", .integer(digits: "9007199254740993")),
      ("-9007199254740993", .integer(digits: "-9007199254740993")), ("1e16", .number(1e16)),
      (#""a\u00e9\n\"""#, .text("a\u{e9}\n\"")), (#""é😀""#, .text("é😀")), ("\"\"", .text("")),
      (" [1, \"x\"] ", .list([.number(1), .text("x")])),
    ] as [(String, JSONClaim)])
  func values(text: String, value: JSONClaim) throws {
    #expect(try JSONClaim(parsing: text.utf8) == value)
  }

  @Test(
    arguments: [
      "", "-", "01", "1.", ".5", "+1", "1e", "1e+", "--1", "1-1", "0x1", "1e400", "NaN", "\"", "\"\\\"", "\"\\x\"",
      "\"a\nb\"", "1 2",
    ])
  func malformed(text: String) {
    #expect(throws: JSONClaim.Problem.malformed) { try JSONClaim(parsing: text.utf8) }
  }

  @Test func invalidUTF8IsMalformed() {
    #expect(throws: JSONClaim.Problem.malformed) { try JSONClaim(parsing: [0x22, 0xff, 0x22] as [UInt8]) }
  }

  /// Attack: two ids that are the same floating-point number.
  @Test func wholeNumbersKeepTheirDigits() throws {
    let digits = { (text: String) in try JSONClaim(parsing: text.utf8).wholeNumber }
    #expect(try digits("9007199254740993") == "9007199254740993" && digits("9007199254740992") == "9007199254740992")
    #expect(try digits("7") == "7" && digits("7.0") == "7" && digits("1.5") == nil && digits("1e16") == nil)
    #expect(try JSONClaim(parsing: "9007199254740993".utf8).number == 9_007_199_254_740_992)
  }
}
