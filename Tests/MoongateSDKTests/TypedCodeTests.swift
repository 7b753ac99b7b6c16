import MoongateSDK
import Testing

@Suite("Codes as they are typed") struct TypedCodeTests {
  @Test(
    "white space, dashes and invisible characters mean nothing",
    arguments: [
      "123456", " 123 456\n", "123-456", "123\u{2013}456", "123\u{2014}456", "123\u{2212}456", "123\u{FF0D}456",
      "123\u{301C}456", "\u{200B}123456", "123\u{AD}456", "\u{FEFF}123456", "\u{2066}123456\u{2069}",
      "123\u{A0}456", "123\u{3000}456", "123\u{2028}456", "123\t456\r\n", "１２３４５６", "१२३४५६", "١٢٣٤٥٦",
      "\u{1D7CF}\u{1D7D0}\u{1D7D1}\u{1D7D2}\u{1D7D3}\u{1D7D4}",
    ])
  func digits(typed: String) { #expect(TypedCode(typed).digits == "123456") }

  @Test("letters keep their case, and those of full width are read") func letters() {
    #expect(TypedCode("ab\u{2013}CD ＥｆＺｚ").text == "abCDEfZz")
    #expect(TypedCode("ab12").digits == nil)
  }

  @Test(
    "everything else stays, to be refused",
    arguments: ["12.34", "12,34", "12_34", "12ー34", "①②", "¹²", "Ⅷ", "12\u{0}34", "ß", "\u{17F}"])
  func others(typed: String) {
    #expect(TypedCode(typed).digits == nil)
    #expect(TypedCode(typed).text == typed)
  }

  @Test("of nothing, nothing is left", arguments: ["", " ", "-", "\u{200B}\u{2212}"]) func empty(typed: String) {
    #expect(TypedCode(typed).digits == "")
  }
}
