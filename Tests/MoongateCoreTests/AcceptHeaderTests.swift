import MoongateCore
import Testing

@Suite struct AcceptHeaderTests {
  @Test(arguments: [
    "text/html", "TEXT/HTML", "text/html;q=0.9", "application/json, text/html", "\t text/html ,*/*", ",text/html",
  ])
  func browsersAreKnown(_ value: String) { #expect(containsHTML(value)) }

  @Test(arguments: [
    "", ",", "*/*", "text/*", "text/htm", "text/html5", "application/xhtml+xml", "application/json;of=text/html",
    "text\u{0f}html",
  ])
  func programsAreKnown(_ value: String) { #expect(!containsHTML(value)) }

  private func containsHTML(_ value: String) -> Bool {
    let bytes = Array(value.utf8)
    return AcceptHeader.containsHTML(bytes.span)
  }
}
