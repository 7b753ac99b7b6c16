import Foundation
import HTTPTypes
import MoongateSDK
import Testing

/// Text from requests on pages.
@Suite struct EscapingTests {
  /// Attack: a link to the sign-in page with tags in the phone number. Mustache compares whole characters, and `<`
  /// after U+0600, or `"` before a combining accent, is a part of another character.
  @Test(arguments: [
    "<b>", "\"><b>", "\u{600}<b>", "\u{6dd}\u{600}<b>", "\"\u{301}><b>", "\u{600}\"\u{301}\u{600}><\u{338}b>",
    "'\u{20dd}\"\u{fe0f}>\u{110bd}<b>", "&\u{300}lt;<b>", "<\u{200d}b>\u{600}<b>",
  ])
  func noTextBecomesATag(_ text: String) async throws {
    try await HTTPGateway().run { client in
      let page = try await client.send(
        .get, "/auth/login?phone=\(PercentEncoding.encode(text))", headers: [("Accept", "text/html")])
      #expect(page.status == 200)
      let input = try #require(page.text.components(separatedBy: "<input id=\"phone\"").last)
      // As a parser of HTML reads the value: up to the next quote, whatever follows it.
      let value = try #require(input.components(separatedBy: " value=\"").dropFirst().first)
      let scalars = value.unicodeScalars.prefix { $0 != "\"" }
      #expect(!scalars.contains("<") && !scalars.contains(">"), "\(text.debugDescription)")
      let rest = value.unicodeScalars.dropFirst(scalars.count + 1)
      #expect(String(String.UnicodeScalarView(rest)).hasPrefix(" placeholder="), "\(text.debugDescription)")
    }
  }

  /// Letters that consist of several code points stay as they are.
  @Test func otherTextStays() async throws {
    try await HTTPGateway().run { client in
      for text in ["e\u{301}", "नमस्ते", "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}", "\u{600}1", "é & ü"] {
        let page = try await client.send(
          .get, "/auth/login?phone=\(PercentEncoding.encode(text))", headers: [("Accept", "text/html")])
        let shown = text.replacing("&", with: "&amp;")
        #expect(Array(page.text.utf8).contains(Array(" value=\"\(shown)\"".utf8)), "\(text)")
      }
    }
  }
}

extension [UInt8] {
  /// Whether the bytes occur in these.
  fileprivate func contains(_ part: [UInt8]) -> Bool {
    guard count >= part.count else { return false }
    return (0...(count - part.count)).contains { self[$0...].starts(with: part) }
  }
}
