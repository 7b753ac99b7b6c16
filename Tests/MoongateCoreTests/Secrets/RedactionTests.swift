import Testing

@testable import MoongateCore

/// What providers write about a step contains no data of the step.
@Suite struct RedactionTests {
  @Test(arguments: [
    ("the code 532917 was wrong", "the code [redacted] was wrong"), ("532917532917", "[redacted]"),
    ("code=\"532917\"", "code=\"[redacted]\""),
    ("asha@example.com", "[redacted]"), ("ASHA@Example.COM is new", "[redacted] is new"),
    ("to=asha%40example.com&x", "to=[redacted]&x"),
    // Two letters are redacted only as a whole word.
    ("IN is valid IN india", "[redacted] is valid [redacted] india"), ("s3cret/+ ä and more", "[redacted] and more"),
    ("nothing", "nothing"),
    ("typed 53 29 17", "typed [redacted]"), ("typed 53-29-17", "typed 53-29-17"), ("", ""),
  ]) func hides(_ text: String, _ expected: String) {
    #expect(Redaction(["53 29 17", " asha@example.com ", "IN", "s3cret/+ ä", ""])(text) == expected)
  }

  @Test func aLineIsBounded() {
    #expect(Redaction([])(String(repeating: "x", count: 100_000)).utf8.count < 2_100)
    #expect(!Redaction(["secret"])(String(repeating: "x", count: 1_997) + "secret").contains("sec"))
  }

  /// Attack: a malformed text, or one that contains the replacement mark.
  @Test func arbitraryTextIsRedacted() {
    #expect(
      Redaction(["[redacted]", "\u{0}", "\u{1F468}\u{200D}\u{1F469}"])("a \u{1F468}\u{200D}\u{1F469} b")
        == "a [redacted] b")
  }
}
