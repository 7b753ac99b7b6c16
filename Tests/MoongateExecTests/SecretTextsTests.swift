import Testing

@testable import MoongateExec

/// Redaction of logs.
@Suite struct SecretTextsTests {
  private let start = ContinuousClock.now

  @Test func manySecretsAreRedacted() {
    let secrets = SecretTexts(["for-good"])
    for number in 0..<20_000 { secrets.add(["word-\(number)-of-it"], at: start) }
    for number in [0, 9_999, 19_999] {
      #expect(secrets.redacted("a word-\(number)-of-it, for-good.", at: start) == "a [redacted], [redacted].")
    }
    #expect(secrets.redacted("a word-20000-of-it", at: start) == "a word-20000-of-it")
  }

  @Test func oldestSecretsAreForgottenFirst() {
    let secrets = SecretTexts([])
    for number in 0..<1_000 { secrets.add(["text-\(number)."], at: start + .seconds(number)) }
    let now = start + .seconds(999)
    #expect(secrets.redacted("text-938. text-939. text-999.", at: now) == "text-938. [redacted] [redacted]")
  }

  /// Lines that cannot be redacted are withheld.
  @Test func unredactableLinesAreWithheld() {
    let secrets = SecretTexts(["for-good"], most: 10)
    for number in 0..<11 { secrets.add(["text-\(number)."], at: start + .seconds(number)) }
    #expect(secrets.redacted("text-0.", at: start + .seconds(11)).hasPrefix("[withheld"))
    #expect(secrets.redacted("text-10. for-good", at: start + .seconds(61)) == "[redacted] [redacted]")
  }

  @Test(arguments: [
    (["abcdef", "defghi"], "abcdefghi", "[redacted]"), (["abcd", "abcdef"], "xabcdefx", "x[redacted]x"),
    (["abc"], "abc", "abc"),
    (["caf\u{e9}s"], "the cafe\u{301}s", "the [redacted]"), (["abcd"], "", ""), (["abcd"], "abc", "abc"),
    // A part of a long text that was truncated.
    (
      [String(repeating: "0123456789", count: 100)], "is " + String(repeating: "0123456789", count: 50), "is [redacted]"
    ),
    (["abcd", "abcd"], "abcd\u{301}", "[redacted]\u{301}"),
  ])
  func secretsInATextAreRedacted(_ secrets: [String], _ text: String, _ shown: String) {
    #expect(Array(SecretTexts(secrets).redacted(text).unicodeScalars) == Array(shown.unicodeScalars))
  }
}
