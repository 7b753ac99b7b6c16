import MoongateCore
import NIOCore
import NIOHPACK
import Testing

@testable import MoongateProxy

/// The conversion of HTTP/2 heads, and heads that are refused.
@Suite struct RequestTextTests {
  private func write(_ fields: [(String, String)], isWhole: Bool = true) -> String? {
    RequestText.write(HPACKHeaders(fields), isWhole: isWhole).map { String(buffer: $0.text) }
  }

  private let plain = [(":method", "GET"), (":scheme", "https"), (":authority", "a.example"), (":path", "/x?y")]

  @Test func aPlainHead() {
    #expect(write(plain + [("accept", "*/*")]) == "GET /x?y HTTP/1.1\r\nhost: a.example\r\naccept: */*\r\n\r\n")
  }

  @Test func aBodyOfUnknownLengthIsChunked() {
    #expect(write(plain, isWhole: false)?.hasSuffix("\r\ntransfer-encoding: chunked\r\n\r\n") == true)
    #expect(
      write(plain + [("content-length", "5")], isWhole: false)?.hasSuffix("\r\ncontent-length: 5\r\n\r\n") == true)
  }

  @Test func cookieFieldsAreJoined() {
    #expect(
      write(plain + [("cookie", "a=1"), ("x", "y"), ("cookie", "b=2; c=3")])?.contains("cookie: a=1; b=2; c=3\r\n")
        == true)
  }

  /// Two different hosts are written as two fields, which the head decoder refuses; the same host twice is written
  /// once.
  @Test func hosts() {
    #expect(write(plain + [("host", "a.example")])?.components("host: ") == 1)
    #expect(write(plain + [("host", "b.example")])?.components("host: ") == 2)
    #expect(write([plain[0], plain[1], plain[3], ("host", "a.example")])?.components("host: ") == 1)
    #expect(write([plain[0], plain[1], plain[3]])?.components("host: ") == 0)
  }

  @Test(arguments: [
    ("x", "a\r\nb: c"), ("x", "a\nb"), ("x", "a\0"), ("X", "upper case"), ("a b", "c"), ("a:", "c"), ("", "c"),
    ("connection", "close"),
    ("transfer-encoding", "chunked"), ("upgrade", "websocket"), ("keep-alive", "5"), ("proxy-connection", "close"),
    (":path", "/twice"),
    (":protocol", "websocket"), (":other", "x"), ("cookie", "a\r\nb"), ("host", "a\nb"),
    ("x", " a"), ("x", "a "), ("x", "\ta"), ("x", "a\t"), ("x", " "), ("cookie", "a=1 "), ("host", " a.example"),
  ]) func malformed(name: String, value: String) {
    #expect(write(plain + [(name, value)]) == nil)
  }

  /// RFC 9113 section 8.2.2. The conversion compares each of the forbidden names itself. The other hop-by-hop headers
  /// are valid in HTTP/2 and removed later, as they are from requests of HTTP/1.1.
  @Test(arguments: HopByHopHeaders.names.map(\.description)) func hopByHopHeadersAreRefused(_ name: String) {
    let isAllowed = ["proxy-authenticate", "proxy-authorization", "te", "trailer"].contains(name)
    #expect((write(plain + [(name, "x")]) != nil) == isAllowed)
  }

  @Test(arguments: ["", "/a b", "/a\r\n", "/a\tb", "/\u{e4}", "/\u{7f}", "a", "https://a.example/", "*x"])
  func invalidTargetsAreRefused(path: String) {
    #expect(write([plain[0], plain[1], plain[2], (":path", path)]) == nil)
  }

  @Test(arguments: ["", "G T", "GET / HTTP/1.1\r\nx: y\r\n\r\nGET", "G\u{e9}T"]) func invalidMethodsAreRefused(
    method: String
  ) {
    #expect(write([(":method", method), plain[1], plain[2], plain[3]]) == nil)
  }
}

extension String {
  /// The number of occurrences of the text.
  fileprivate func components(_ text: String) -> Int { ranges(of: text).count }
}
