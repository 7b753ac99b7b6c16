import MoongateCore
import Testing

@Suite struct AcceptHeaderTests {
  @Test(arguments: [
    "text/html", "TEXT/HTML", "text/html;q=0.9", "application/json, text/html", "\t text/html ,*/*", ",text/html",
    "text/html;q=0.001", "text/html;level=1;q=1", "text/html;q=0, text/html;level=1", "text/html;q=", "text/html;x=q=0",
  ])
  func browsersAreKnown(_ value: String) { #expect(containsHTML(value)) }

  @Test(arguments: [
    "", ",", "*/*", "text/*", "text/htm", "text/html5", "application/xhtml+xml", "application/json;of=text/html",
    "text\u{0f}html", "text/html;q=0", "text/html; Q=0.000", "text/html ; q=0 ;a=b", "text/html;a=b;q=0, */*",
  ])
  func programsAreKnown(_ value: String) { #expect(!containsHTML(value)) }

  private func containsHTML(_ value: String) -> Bool {
    let bytes = Array(value.utf8)
    return AcceptHeader.containsHTML(bytes.span)
  }
}
