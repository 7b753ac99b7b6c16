import MoongateCore
import Testing

/// How absolute URLs are split, and which texts are origins.
@Suite struct WebAddressTests {
  @Test(arguments: [
    ("https://app.example.com", "https://app.example.com", ""),
    ("https://app.example.com/", "https://app.example.com", "/"),
    ("https://APP.example.com:443/in?x=1#y", "https://app.example.com", "/in?x=1#y"),
    ("http://localhost:8080?x=/y", "http://localhost:8080", "?x=/y"),
    ("http://localhost:80#x", "http://localhost", "#x"),
    ("https://[2001:DB8::1]:8443/in", "https://[2001:db8::1]:8443", "/in"),
    ("https://app.example.com:/in", "https://app.example.com", "/in"),
    ("https://app.example.com./in", "https://app.example.com", "/in"),
  ]) func isSplit(_ text: String, _ origin: String, _ tail: String) throws {
    let address = try #require(WebAddress(text))
    #expect(address.origin.description == origin)
    #expect(address.tail == tail)
  }

  /// Attack: a text that a browser or another parser reads as an address of another host.
  @Test(arguments: [
    "", "https", "https:", "https://", "https:///in", "https:/app.example.com", "https:app.example.com",
    "//app.example.com/in", "/in", "app.example.com", "HTTPS://app.example.com", "ftp://app.example.com",
    " https://app.example.com", "https://user@app.example.com/", "https://app.example.com@evil.example/",
    "https://app.example.com\\@evil.example/", "https://app.example.com:0/", "https://app.example.com:65536/",
    "https://app.example.com:443:443/", "https://app..example.com/", "https://app%2eexample.com/",
    "https://ａpp.example.com/", "https://app.example.com\u{0}/",
  ]) func isNone(_ text: String) {
    #expect(WebAddress(text) == nil)
  }

  @Test(arguments: [
    ("https://auth.example.com", true), ("https://auth.example.com/", true), ("http://127.0.0.1:8080", true),
    ("https://auth.example.com//", false), ("https://auth.example.com/x", false), ("https://auth.example.com?x", false),
    ("https://auth.example.com#x", false), ("https://user@auth.example.com", false), ("auth.example.com", false),
    ("ws://auth.example.com", false), ("https://", false), ("https:///", false),
  ]) func originHasNothingBehindIt(_ text: String, _ isOrigin: Bool) {
    #expect((PublicURL(parsing: text) != nil) == isOrigin)
  }
}
