import MoongateSDK
import Testing

@Suite("Email addresses") struct EmailAddressTests {
  /// Attack: each spelling that is taken for another address brings a fresh budget of guesses.
  @Test(
    "spellings of one address are one",
    arguments: [
      "ada@example.com", "Ada@Example.COM", " ada@example.com\t", "ADA@EXAMPLE.COM", "ada@ｅｘａｍｐｌｅ.com",
      "ada@exam\u{00AD}ple.com", "ada@example。com",
      // Copied along from a page, a list or a chat.
      "ada@example.com\u{00A0}", "ada@example.com\r\n", "\nada@example.com", "\u{200B}ada@example.com\u{FEFF}",
      "\u{2068}ada@example.com\u{2069}", "\u{3000}ada@example.com\u{2028}",
    ])
  func one(spelling: String) throws {
    let address = try #require(EmailAddress(spelling))
    #expect(address.text == "ada@example.com")
    #expect(Identifier(address) == Identifier(kind: .email, value: "ada@example.com", display: ""))
    #expect(Identifier(address).attributes == ["domain": "example.com"])
  }

  @Test(
    "an international domain is one with its ASCII form",
    arguments: ["a@bücher.example", "a@BÜCHER.example", "a@bu\u{0308}cher.example", "a@xn--bcher-kva.example"])
  func international(spelling: String) { #expect(EmailAddress(spelling)?.text == "a@xn--bcher-kva.example") }

  @Test(
    "the everyday forms are read",
    arguments: [
      "a@b.co", "a+b@example.com", "a.b-c_d@sub.example.co.uk", "o'neil@example.ie", "1@example.com",
      "a@1.2.3.4.example",
      "!#$%&*/=?^`{|}~@example.com",
    ])
  func read(text: String) { #expect(EmailAddress(text)?.text == text) }

  @Test("what is after a plus is part of it") func plus() {
    #expect(EmailAddress("a+b@example.com") != EmailAddress("a@example.com"))
  }

  @Test(
    "what is none is none",
    arguments: [
      "", "@", "a", "a@", "@b.com", "a@b", "a@localhost", "a@@b.com", "a b@c.com", "a@b c.com", "\"a b\"@c.com",
      "\"a\"@c.com", "a(b)@c.com",
      "<a@b.com>",
      "a@b.com,c@d.com", "a@b.com;c@d.com", "a@b.com\r\nBcc: c@d.com", "a\r\nb@c.com", "a\u{200B}b@c.com",
      "a\u{00A0}b@c.com", "\u{200B}", "\u{00A0}@b.com",
      "a\0@b.com", "a@b.com\0", ".a@b.com",
      "a.@b.com", "a..b@c.com", "a@.b.com", "a@b.com.", "a@b..com", "a@-b.com", "a@b-.com", "a@[127.0.0.1]",
      "a@127.0.0.1", "a@b.com:25", "a@b.com/c",
      "a@%41.com", "a@b_c.com", "é@example.com", "a@\u{202E}b.com@c", "a@b.com?subject=x", "mailto:a@b.com",
      "a@\u{0000}.com", "a@ .com",
    ])
  func refused(text: String) { #expect(EmailAddress(text) == nil) }

  @Test("lengths are those of RFC 5321") func lengths() {
    let label = String(repeating: "b", count: 61)
    #expect(EmailAddress(String(repeating: "a", count: 64) + "@example.com") != nil)
    #expect(EmailAddress(String(repeating: "a", count: 65) + "@example.com") == nil)
    #expect(EmailAddress("a@\(label).\(label).\(label).\(label).com") != nil)
    #expect(EmailAddress("\(String(repeating: "a", count: 64))@\(label).\(label).\(label).com") != nil)
    #expect(EmailAddress("\(String(repeating: "a", count: 64))@\(label).\(label).\(label).\(label).com") == nil)
    #expect(EmailAddress("a@\(String(repeating: "b", count: 64)).com") == nil)
    #expect(EmailAddress(String(repeating: "a", count: 300) + "@example.com") == nil)
    #expect(EmailAddress(String(repeating: "a@", count: 100_000)) == nil)
  }

  @Test("a field that is none says so") func field() {
    let problem = InputProblem(field: "email", reason: .invalidEmail, detail: "Please enter a valid email address.")
    #expect(throws: problem) { try ProviderInput(fields: ["email": .text("nobody")], defaultRegion: "IN").email() }
    #expect(throws: InputProblem.self) { try ProviderInput(fields: ["email": .other], defaultRegion: "IN").email() }
    #expect(throws: InputProblem.self) { try ProviderInput(fields: [:], defaultRegion: "IN").email() }
  }
}
