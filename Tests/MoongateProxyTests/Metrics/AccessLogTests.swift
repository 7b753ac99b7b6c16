import Foundation
import MoongateCore
import MoongateTesting
import NIOCore
import Testing

@testable import MoongateProxy

/// Access log lines: valid JSON for any client input, and no line is lost without being counted.
@Suite struct AccessLogTests {
  private func entry(_ outcome: Outcome = .passed) -> AccessLines.Entry {
    AccessLines.Entry(
      at: Timestamp(milliseconds: 1_795_226_400_007), client: .unspecified, wire: .http1, status: 200, outcome: outcome,
      answerBytes: 5,
      nanoseconds: 1_204_567, route: "/**", account: "ac_1", decision: nil, trace: nil)
  }

  private func line(_ request: String) throws -> [String: Any] {
    var input = ByteBuffer(string: request)
    var decoder = RequestDecoder()
    var spare: [HeadField] = []
    let head = try #require(try decoder.next(&input, spare: &spare))
    var logged = LoggedHead()
    logged.take(head, head.bytes.readableBytesUInt8Span)
    var lines = AccessLines()
    lines.add(logged, entry())
    let (bytes, count) = lines.take()
    #expect(count == 1 && bytes.last == UInt8(ascii: "\n") && bytes.filter { $0 < 0x20 }.count == 1)
    return try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
  }

  @Test func aLine() throws {
    let line = try line("GET /a/b?secret=1 HTTP/1.1\r\nHost: App.example:1\r\n\r\n")
    #expect(
      line["path"] as? String == "/a/b" && line["host"] as? String == "App.example:1"
        && line["method"] as? String == "GET")
    #expect(line["time"] as? String == "2026-11-21T02:00:00.007Z")
    #expect(line["ms"] as? Double == 1.204 && line["bytes"] as? Int == 5 && line["account"] as? String == "ac_1")
    #expect(line["decision"] == nil && line["trace"] == nil)
  }

  /// Attack: quotes, backslashes and non-ASCII bytes in client values.
  @Test(arguments: ["/a\"b", "/a\\b", "/a\\\"}", "/'<script>'"]) func clientValuesAreEscaped(path: String) throws {
    #expect(try line("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n")["path"] as? String == path)
    #expect(try line("GET /x HTTP/1.1\r\nHost: \(path)\u{e4}\t\r\n\r\n")["host"] as? String != nil)
  }

  @Test func aFlowIsNamedByItsBeginningOnly() throws {
    let id = "fl_" + String(repeating: "A", count: 43)
    let path = try #require(try line("GET /api/auth/flows/\(id)/submit HTTP/1.1\r\nHost: a\r\n\r\n")["path"] as? String)
    #expect(path == "/api/auth/flows/fl_AAAAAAAA.../submit")
    #expect(try line("GET /fl_short HTTP/1.1\r\nHost: a\r\n\r\n")["path"] as? String == "/fl_short")
  }

  @Test func longPathsAreCut() throws {
    let path = try #require(
      try line("GET /\(String(repeating: "a", count: 5000)) HTTP/1.1\r\nHost: a\r\n\r\n")["path"] as? String)
    #expect(path.count == 1024)
  }

  @Test func linesArriveAndAreCounted() throws {
    let folder = try ScratchFolder()
    let file = folder.path("access.log")
    let log = try AccessLog(.file(file))
    log.take(Array("one\n".utf8), lines: 1)
    log.take(Array("two\nthree\n".utf8), lines: 2)
    // Input larger than the buffer is dropped and counted.
    log.take(Array(repeating: 0x41, count: 9 * 1024 * 1024), lines: 7)
    log.end()
    #expect(try String(contentsOfFile: file, encoding: .utf8) == "one\ntwo\nthree\n")
    #expect(log.counts == (3, 7))
  }

  @Test func targets() {
    for text in [nil, "", "off"] { #expect(AccessLog.Target(text) == nil) }
    for text in ["stdout", "-"] { #expect(AccessLog.Target(text) == .standardOutput) }
    #expect(AccessLog.Target("/a/b") == .file("/a/b"))
  }

  @Test func unopenableFileIsReported() {
    #expect(throws: AccessLog.Problem.self) { try AccessLog(.file("/nowhere/at/all")) }
  }
}
