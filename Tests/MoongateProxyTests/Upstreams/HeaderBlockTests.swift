import NIOCore
import NIOHPACK
import Testing

@testable import MoongateProxy

/// Heads of requests as header blocks.
@Suite struct HeaderBlockTests {
  private let head =
    "GET /a HTTP/1.1\r\nHost: h\r\nCookie: a=b\r\nAuthorization: Bearer x\r\nRemote-User: u\r\nX-Own: c\r\n\r\n"

  private func decode(_ block: ByteBuffer, by decoder: inout HPACKDecoder) throws -> [String] {
    var block = block
    return try decoder.decodeHeaders(from: &block).map { "\($0.name)=\($0.value) \($0.indexable)" }
  }

  /// Attack (CRIME): the length of a head tells whether a guess is the cookie of another user.
  @Test func nothingIsStoredInATable() throws {
    var decoder = HPACKDecoder(allocator: ByteBufferAllocator())
    let first = try #require(HeaderBlock.request(ByteBuffer(string: head), isSecure: false, isFirst: true))
    let second = try #require(HeaderBlock.request(ByteBuffer(string: head), isSecure: false, isFirst: false))
    // The first one sets the size of the table to 0.
    #expect(first.readableBytes == second.readableBytes + 1 && first.readableBytesView.first == 0x20)
    let fields = try decode(first, by: &decoder)
    #expect(try decode(second, by: &decoder) == fields)
    #expect(
      fields.suffix(4) == [
        "cookie=a=b [neverIndexed]", "authorization=Bearer x [neverIndexed]", "remote-user=u [neverIndexed]",
        "x-own=c [non-indexable]",
      ], "\(fields)")
  }

  @Test(arguments: [
    ("GET", false, [":method=GET", ":scheme=http"]), ("POST", true, [":method=POST", ":scheme=https"]),
    ("get", false, [":method=get", ":scheme=http"]), ("PROPFIND", true, [":method=PROPFIND", ":scheme=https"]),
  ]) func methodAndSchemeAreStated(_ method: String, _ isSecure: Bool, _ expected: [String]) throws {
    let text = ByteBuffer(string: "\(method) /a%20b?c HTTP/1.1\r\nHost: h:1\r\n\r\n")
    var decoder = HPACKDecoder(allocator: ByteBufferAllocator())
    let block = try #require(HeaderBlock.request(text, isSecure: isSecure, isFirst: false))
    let fields = try decode(block, by: &decoder).map { String($0.prefix { $0 != " " }) }
    #expect(fields == expected + [":path=/a%20b?c", ":authority=h:1"])
  }

  /// Integers of one, two and three bytes (RFC 7541 section 5.1).
  @Test(arguments: [0, 1, 126, 127, 128, 254, 255, 256, 16_383, 16_510, 16_511, 40_000]) func anyLengthIsWritten(
    _ length: Int
  ) throws {
    let value = String(repeating: "x", count: length)
    let text = ByteBuffer(string: "GET / HTTP/1.1\r\nHost: h\r\nX: \(value)\r\n\r\n")
    var decoder = HPACKDecoder(
      allocator: ByteBufferAllocator(), maxDynamicTableSize: 4096, maxHeaderListSize: 1024 * 1024)
    let block = try #require(HeaderBlock.request(text, isSecure: false, isFirst: false))
    #expect(try decode(block, by: &decoder).last == "x=\(value) [non-indexable]")
  }

  @Test(arguments: [
    "", "GET", "GET /", "GET / HTTP/1.1", "GET / HTTP/1.1\r\nHost: h", "GET / HTTP/1.1\r\nHost h\r\n\r\n",
  ])
  func textThatIsNoHeadIsRefused(_ text: String) {
    #expect(HeaderBlock.request(ByteBuffer(string: text), isSecure: false, isFirst: false) == nil)
  }
}
