import MoongateSDK
import PhoneOTP
import Testing

@Suite("Spellings of a number") struct SpellingTests {
  let phone = PhoneOTP()

  /// Attack: each spelling that gives another identifier gets its own attempts.
  @Test(
    "all spellings give one identifier",
    arguments: [
      "9999999999", "99999 99999", "099999 99999", "+919999999999", "+91 99999 99999", "+91 99999-99999",
      "+91-99999-99999", "(99999) 99999",
      "+91 (0) 99999 99999", "91 99999 99999", "00919999999999", "0091 99999 99999", " 99999\u{00A0}99999 ",
      "99999.99999", "99999/99999", "99999 99999\n", "99999\r\n99999", "\u{2028}99999\u{0085}99999", "[99999]99999",
      "99999~99999", "99999\u{2053}99999", "99999\u{223C}99999", "99999\u{301C}99999", "~9999999999",
      "［９９９９９］９９９９９", "（９９９９９）９９９９９", "９９９９９～９９９９９", "９９９９９．９９９９９", "９９９９９／９９９９９",
      "９９９９９－９９９９９", "９９９９９ー９９９９９", "99999ｰ99999", "\u{2060}99999\u{3000}99999\u{00AD}",
      "99999\u{2013}99999", "99999\u{2011}99999", "\u{202A}+91 99999 99999\u{202C}", "\u{200E}99999 99999",
      "９９９９９９９９９９", "＋９１９９９９９９９９９９",
      "٩٩٩٩٩٩٩٩٩٩", "۹۹۹۹۹۹۹۹۹۹", "९९९९९९९९९९", "+९१ ९९९९९ ९९९९९", "৯৯৯৯৯৯৯৯৯৯",
    ])
  func one(spelling: String) throws {
    let identifier = try phone.readIdentifier(.typed(spelling))
    #expect(identifier.value == "+919999999999")
    #expect(identifier.display == "+91 99999 99999")
    #expect(identifier.attributes == ["country": "IN", "type": "mobile"])
    #expect(identifier.kind == .phone)
  }

  @Test(
    "the client's region takes precedence over the gateway's",
    arguments: [("US", "+12025550123"), ("us", "+12025550123"), ("IN", "+912025550123")])
  func region(region: String, expected: String) throws {
    let input = ProviderInput(fields: ["phone": .text("2025550123"), "region": .text(region)], defaultRegion: "IN")
    #expect(try phone.readIdentifier(input).value == expected)
  }

  @Test("international numbers need no region", arguments: ["IN", "US", "GB"])
  func international(region: String) throws {
    let input = ProviderInput(fields: ["phone": .text("+44 20 7946 0000")], defaultRegion: region)
    let identifier = try phone.readIdentifier(input)
    #expect(identifier.value == "+442079460000")
    #expect(identifier.attributes == ["country": "GB", "type": "fixed"])
  }

  @Test(
    "numbers as dialled in other countries",
    arguments: [
      ("IT", "06 1234 5678", "+390612345678", "IT", "fixed"),
      ("AR", "011 15-2345-6789", "+5491123456789", "AR", "mobile"),
      ("MX", "+52 1 55 1234 5678", "+525512345678", "MX", "mobile"),
      ("US", "(202) 555-0123", "+12025550123", "US", "mobile"),
      ("GB", "07400 123456", "+447400123456", "GB", "mobile"),
      ("DE", "0151 23456789", "+4915123456789", "DE", "mobile"),
      ("FR", "06 12 34 56 78", "+33612345678", "FR", "mobile"),
      ("BR", "(11) 96123-4567", "+5511961234567", "BR", "mobile"),
      ("JP", "050-1234-5678", "+815012345678", "JP", "voip"),
      ("JP", "０９０ー１２３４ー５６７８", "+819012345678", "JP", "mobile"),
      ("JP", "[090]1234-5678", "+819012345678", "JP", "mobile"),
      ("IN", "+870 773 111 632", "+870773111632", "001", "mobile"),
      ("IN", "+800 1234 5678", "+80012345678", "001", "unknown"),
    ])
  func elsewhere(region: String, typed: String, e164: String, country: String, type: String) throws {
    let identifier = try phone.readIdentifier(.typed(typed, region: region))
    #expect(identifier.value == e164)
    #expect(identifier.attributes == ["country": country, "type": type])
  }

  @Test("ranges unknown to libphonenumber are accepted and assigned to the country of their calling code")
  func possibleIsEnough() throws {
    let identifier = try phone.readIdentifier(.typed("11111 11111"))
    #expect(identifier.value == "+911111111111")
    #expect(identifier.attributes == ["country": "IN", "type": "unknown"])
    #expect(!phone.draft("11111 11111", region: "IN").isValid)
  }

  @Test(
    "a canonical number is parsed as itself in every region",
    arguments: ["+919999999999", "+5491123456789", "+390612345678", "+80012345678"])
  func fixedPoint(e164: String) throws {
    for region in ["IN", "US", "IT", "AR"] {
      #expect(try phone.readIdentifier(.typed(e164, region: region)).value == e164)
    }
  }

  @Test("concurrent use") func threads() async throws {
    try await withThrowingTaskGroup(of: String.self) { group in
      for index in 0..<400 {
        group.addTask { try phone.readIdentifier(.typed("98765 4\(String(index + 1000))")).value }
      }
      var seen: Set<String> = []
      for try await value in group { seen.insert(value) }
      #expect(seen.count == 400)
    }
  }
}

extension ProviderInput {
  static func typed(_ phone: String, region: String = "IN") -> Self {
    Self(fields: ["phone": .text(phone)], defaultRegion: region)
  }
}
