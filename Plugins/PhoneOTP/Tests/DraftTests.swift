import MoongateSDK
import PhoneOTP
import Testing

@Suite("Formatting while a number is typed") struct DraftTests {
  let phone = PhoneOTP()

  @Test(
    "digits are grouped as in the region",
    arguments: [
      ("IN", "9", "9", nil, false), ("IN", "99999", "99999", nil, false), ("IN", "999999", "99999 9", nil, false),
      ("IN", "9999999999", "99999 99999", "+919999999999", true),
      ("IN", "99999 99999", "99999 99999", "+919999999999", true),
      ("IN", "९९९९९९९९९९", "99999 99999", "+919999999999", true),
      ("IN", "+919999999999", "+91 99999 99999", "+919999999999", true),
      ("US", "2025550123", "(202) 555-0123", "+12025550123", true),
      ("IN", "1111111111", "11 1111 1111", "+911111111111", false),
    ] as [(String, String, String, String?, Bool)])
  func formats(region: String, typed: String, formatted: String, canonical: String?, valid: Bool) {
    #expect(
      phone.draft(typed, region: region) == IdentifierDraft(formatted: formatted, canonical: canonical, isValid: valid))
  }

  @Test(
    "other text is returned unchanged and is invalid",
    arguments: ["", "abc", "99999x", "😀", "+", "\u{0}", String(repeating: "9", count: 300), "+91+"])
  func anything(typed: String) {
    #expect(phone.draft(typed, region: "IN") == IdentifierDraft(formatted: typed, canonical: nil, isValid: false))
  }

  @Test("an unknown region formats nothing", arguments: ["", "ZZ", "nowhere"]) func unknownRegion(region: String) {
    #expect(
      phone.draft("9999999999", region: region)
        == IdentifierDraft(formatted: "9999999999", canonical: nil, isValid: false))
  }

  @Test func numbersWithACountryCodeNeedNoRegion() {
    let draft = phone.draft("+919999999999", region: "")
    #expect(draft.canonical == "+919999999999" && draft.isValid && draft.formatted == "+91 99999 99999")
  }
}
