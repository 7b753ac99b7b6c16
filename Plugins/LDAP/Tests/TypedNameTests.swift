import MoongateSDK
import Testing

@testable import LDAP

@Suite("Typed names and passwords") struct TypedNameTests {
  /// Attack: every spelling that a directory takes for the same name would have its own attempts.
  @Test(arguments: ["ada", "ADA", " ada ", "ａｄａ", "a\u{AD}da", "\u{200B}ada", "ad\u{200D}a"])
  func spellingsCountAsOne(_ typed: String) throws { #expect(try TypedName(typed).canonical == "ada") }

  @Test func spacesAndAccents() throws {
    #expect(try TypedName("Ada  Lovelace").canonical == "ada lovelace")
    #expect(try TypedName("a\u{301}da").canonical == TypedName("áda").canonical)
    #expect(try TypedName("áda").canonical != TypedName("ada").canonical)
    #expect(try TypedName(" Ada ").text == "Ada")
  }

  @Test(arguments: [
    ("", "Please enter your user name."), (" \u{200B}", "Please enter your user name."),
    (String(repeating: "a", count: 129), "A user name has at most 128 characters."),
    (String(repeating: "\u{FDFA}", count: 100), "A user name has at most 128 characters."),
    ("a\nb", "A user name has no control characters."), ("a\0", "A user name has no control characters."),
  ]) func refusesNames(_ typed: String, _ sentence: String) {
    do {
      _ = try TypedName(typed)
      Issue.record("accepted")
    } catch { #expect((error.field, error.detail) == ("username", sentence)) }
  }
}
