import MoongateSDK
import PhoneOTP
import Testing

@Suite("Refused numbers") struct RefusedNumberTests {
  let phone = PhoneOTP()
  static let indian = "Please enter a valid 10-digit mobile number"

  @Test(
    "invalid numbers of India",
    arguments: [
      "", " ", "+", "++919999999999", "+91+9999999999", "9", "12", "99999", "999999999", "99999 999999", "+91 12345",
      "+91 99999 99999 99999",
      // Extensions and forms of RFC 3966: other spellings of one phone, or a hidden number.
      "9999999999 ext 1", "9999999999x1", "9999999999;ext=1", "9999999999,1", "9999999999#1", "tel:+919999999999",
      "tel:99999;phone-context=+91",
      "9999999999;isub=1", "99999*99999", "９９９９９ｘ９９９９９",
      // Vanity letters, other symbols, control characters.
      "1800FLOWERS", "99999ABCDE", "9999999999😀", "😀", "9999999999\u{0}", "\u{0}", "99999\u{7F}99999",
      "९९९९९९९९९९क", "¹²³⁴⁵⁶⁷⁸⁹⁹",
      "Ⅸ999999999",
      "<script>", "'; drop table accounts; --",
    ])
  func indianSentence(typed: String) {
    #expect(throws: InputProblem(field: "phone", reason: .invalidPhone, detail: Self.indian)) {
      try phone.readIdentifier(.typed(typed))
    }
  }

  @Test(
    "invalid numbers of other regions",
    arguments: [
      ("US", "12345", "This phone number is too short."), ("US", "202 555 0123 4", "This phone number is too long."),
      ("GB", "+44 20 7946", "This phone number is too short."), ("IN", "+1 202 555", "This phone number is too short."),
      ("IN", "+999 1234 5678", "This is not a phone number of any country."),
      ("US", "", "Please enter your phone number."),
      ("US", "555-HELP", "Please enter a phone number in digits only."), ("US", "7", "This phone number is too short."),
      ("US", "+91 12345", indian),
    ])
  func sentences(region: String, typed: String, sentence: String) {
    #expect(throws: InputProblem(field: "phone", reason: .invalidPhone, detail: sentence)) {
      try phone.readIdentifier(.typed(typed, region: region))
    }
  }

  @Test("long texts", arguments: [41, 65, 300, 100_000]) func long(count: Int) {
    for character in ["9", " ", "٩", "a"] {
      #expect(throws: InputProblem.self) {
        try phone.readIdentifier(.typed(String(repeating: character, count: count)))
      }
    }
  }

  @Test("an unknown region", arguments: ["", "ZZ", "XX", "I", "IND", "001", "91", "I\u{0}", "ＩＮ", "in ", "💥"])
  func region(region: String) {
    let input = ProviderInput(fields: ["phone": .text("9999999999"), "region": .text(region)], defaultRegion: "IN")
    #expect { try phone.readIdentifier(input) } throws: { error in
      (error as? InputProblem).map { $0.field == "region" && $0.reason == .invalidInput } ?? false
    }
  }

  @Test("a number without a country code, where neither the client nor the gateway names a country")
  func noRegion() throws {
    #expect(
      throws: InputProblem(
        field: "region", reason: .invalidInput,
        detail: "Please enter the number with + and its country code, or choose a country.")
    ) { try phone.readIdentifier(.typed("99999 99999", region: "")) }
    #expect(try phone.readIdentifier(.typed("+91 99999 99999", region: "")).value == "+919999999999")
    let chosen = ProviderInput(fields: ["phone": .text("99999 99999"), "region": .text("IN")], defaultRegion: "")
    #expect(try phone.readIdentifier(chosen).value == "+919999999999")
    #expect(throws: InputProblem(field: "phone", reason: .invalidPhone, detail: "Please enter your phone number.")) {
      try phone.readIdentifier(.typed(" ", region: ""))
    }
  }

  @Test(
    "fields of another type, and missing fields",
    arguments: [
      ("phone", InputValue.other, ["region": InputValue.text("IN")]), ("phone", .flag(true), [:]), ("phone", nil, [:]),
      ("region", .other, ["phone": .text("9999999999")]), ("region", .flag(false), ["phone": .text("9999999999")]),
    ] as [(String, InputValue?, [String: InputValue])])
  func types(field: String, value: InputValue?, others: [String: InputValue]) {
    var fields = others
    fields[field] = value
    #expect { try phone.readIdentifier(ProviderInput(fields: fields, defaultRegion: "IN")) } throws: { error in
      (error as? InputProblem).map { $0.field == field && $0.reason == .invalidInput } ?? false
    }
  }
}
