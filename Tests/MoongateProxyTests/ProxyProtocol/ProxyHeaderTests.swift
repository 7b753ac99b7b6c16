import MoongateCore
import NIOCore
import Testing

@testable import MoongateProxy

/// Headers of both versions, as proxies and attackers send them.
enum ProxyHeaders {
  static let signature: [UInt8] = [13, 10, 13, 10, 0, 13, 10, 0x51, 0x55, 0x49, 0x54, 10]

  /// A header of version 2.
  /// - Parameters:
  ///   - kind: address family and transport.
  ///   - command: version and command.
  ///   - length: the length field, if it is not that of the rest.
  static func binary(_ kind: UInt8, _ rest: [UInt8], command: UInt8 = 0x21, length: Int? = nil) -> [UInt8] {
    let length = length ?? rest.count
    return signature + [command, kind, UInt8(length >> 8), UInt8(length & 255)] + rest
  }

  /// Source, destination and ports of IPv4.
  static func v4(_ source: [UInt8]) -> [UInt8] { source + [10, 0, 0, 3, 0xdc, 0x04, 0x01, 0xbb] }

  /// The same of IPv6.
  static func v6(_ source: [UInt8]) -> [UInt8] { source + [UInt8](repeating: 0xfd, count: 16) + [0, 80, 1, 0xbb] }

  static let v6Source: [UInt8] = [0x20, 0x01, 0x0d, 0xb8] + [UInt8](repeating: 0, count: 11) + [7]
  static let mapped: [UInt8] = [UInt8](repeating: 0, count: 10) + [0xff, 0xff, 203, 0, 113, 7]
  static let unix = [UInt8](repeating: 0x2f, count: 216)
  /// Extensions: a name, an empty one, and one whose length is beyond the header.
  static let extensions: [UInt8] = [2, 0, 3, 97, 98, 99, 4, 0, 0, 0x20, 0xff, 0xff, 1]

  private static let texts: [(text: String, client: String?)] = [
    ("PROXY TCP4 203.0.113.7 10.0.0.3 56324 443\r\n", "203.0.113.7"),
    ("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n", "255.255.255.255"),
    ("PROXY TCP4 1.2.3.4 0.0.0.0 0 0\r\n", "1.2.3.4"),
    ("PROXY TCP6 2001:db8::7 fd00::3 56324 443\r\n", "2001:db8::7"),
    ("PROXY TCP6 2001:0DB8:0000:0000:0000:0000:0000:0007 ::1 1 2\r\n", "2001:db8::7"),
    ("PROXY TCP6 ::ffff:203.0.113.7 ::ffff:10.0.0.3 56324 443\r\n", "203.0.113.7"),
    ("PROXY TCP4 0.0.0.0 10.0.0.3 0 443\r\n", nil), ("PROXY TCP6 :: ::1 0 443\r\n", nil),
    ("PROXY UNKNOWN\r\n", nil), ("PROXY UNKNOWN 203.0.113.7 10.0.0.3 1 2\r\n", nil),
    ("PROXY UNKNOWN \u{0}\u{7f} x\r\n", nil),
    ("PROXY UNKNOWN \(String(repeating: "f", count: 91))\r\n", nil),
  ]

  private static let binaries: [(bytes: [UInt8], client: String?)] = [
    (binary(0x11, v4([203, 0, 113, 7])), "203.0.113.7"), (binary(0x12, v4([203, 0, 113, 7])), "203.0.113.7"),
    (binary(0x21, v6(v6Source)), "2001:db8::7"), (binary(0x22, v6(v6Source)), "2001:db8::7"),
    (binary(0x21, v6(mapped)), "203.0.113.7"), (binary(0x11, v4([0, 0, 0, 0])), nil),
    (binary(0x11, v4([203, 0, 113, 7]) + extensions), "203.0.113.7"),
    (binary(0x11, v4([203, 0, 113, 7]) + [UInt8](repeating: 255, count: 4084)), "203.0.113.7"),
    (binary(0x31, unix), nil), (binary(0x32, unix + extensions), nil),
    (binary(0x00, []), nil), (binary(0x00, v4([203, 0, 113, 7])), nil), (binary(0x10, []), nil),
    (binary(0x02, extensions), nil),
    (binary(0x00, [], command: 0x20), nil), (binary(0x11, v4([203, 0, 113, 7]), command: 0x20), nil),
    (binary(0xff, [1], command: 0x20), nil),
  ]

  /// Complete headers, and the client that each states.
  static let all = texts.map { (bytes: Array($0.text.utf8), client: $0.client) } + binaries

  /// Text that is malformed after `PROXY `.
  static let malformedText = [
    "PROXY \r\n", "PROXY TCP4\r\n", "PROXY TCP5 1.2.3.4 1.2.3.4 1 2\r\n", "PROXY tcp4 1.2.3.4 1.2.3.4 1 2\r\n",
    "PROXY UNKNOWNS\r\n", "PROXY  TCP4 1.2.3.4 1.2.3.4 1 2\r\n", "PROXY TCP4  1.2.3.4 1.2.3.4 1 2\r\n",
    "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 \r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n",
    "PROXY TCP4 1.2.3 1.2.3.4 1 2\r\n", "PROXY TCP4 01.2.3.4 1.2.3.4 1 2\r\n", "PROXY TCP4 1.2.3.256 1.2.3.4 1 2\r\n",
    "PROXY TCP4 1.2.3.4 x 1 2\r\n", "PROXY TCP4 ::1 ::1 1 2\r\n", "PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n",
    "PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n", "PROXY TCP6 [::1] ::1 1 2\r\n", "PROXY TCP6 1:::2 ::1 1 2\r\n",
    "PROXY TCP4 1.2.3.4 1.2.3.4 65536 2\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1 02\r\n",
    "PROXY TCP4 1.2.3.4 1.2.3.4 -1 2\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 +1 2\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1 \r\n",
    "PROXY TCP4 1.2.3.4 1.2.3.4 1 000001\r\n", "PROXY TCP4\t1.2.3.4 1.2.3.4 1 2\r\n",
    "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\rx", "PROXY UNKNOWN\nGET",
    "PROXY UNKNOWN\r\r\n",
    "PROXY UNKNOWN \(String(repeating: "f", count: 92))\r\n", "PROXY \(String(repeating: "f", count: 101))",
  ]

  static let malformedBinary: [[UInt8]] = [
    binary(0x11, v4([1, 2, 3])), binary(0x21, v4([1, 2, 3, 4])), binary(0x31, v6(v6Source)),
    binary(0x13, v4([1, 2, 3, 4])), binary(0x41, v4([1, 2, 3, 4])), binary(0xf0, []), binary(0x03, []),
    binary(0x11, v4([1, 2, 3, 4]), command: 0x22), binary(0x11, v4([1, 2, 3, 4]), command: 0x2f),
    binary(0x11, v4([1, 2, 3, 4]), command: 0x11), binary(0x11, v4([1, 2, 3, 4]), command: 0x31),
    binary(0x11, [], length: 4097), binary(0x00, [], command: 0x20, length: 65535),
  ]
}

/// Parsing PROXY protocol headers.
@Suite struct ProxyHeaderTests {
  private static let request = Array("GET / HTTP/1.1\r\n\r\n".utf8)

  /// The bytes as a view that does not begin at index 0.
  private static func view(_ bytes: some Sequence<UInt8>) -> ByteBufferView {
    var buffer = ByteBuffer(bytes: [1, 2, 3])
    buffer.writeBytes(bytes)
    buffer.moveReaderIndex(forwardBy: 3)
    return buffer.readableBytesView
  }

  private static func read(_ bytes: some Sequence<UInt8>) -> ProxyHeader { ProxyHeader.read(view(bytes)) }

  @Test func headerStatesItsClient() {
    for (bytes, client) in ProxyHeaders.all {
      let address = client.flatMap { IPAddressText.parse($0.utf8) }
      #expect((address == nil) == (client == nil))
      for rest in [[], Self.request, [0], ProxyHeaders.signature] {
        #expect(Self.read(bytes + rest) == .complete(length: bytes.count, client: address), "\(bytes)")
      }
    }
  }

  @Test func everyPartOfAHeaderIsIncomplete() {
    for (bytes, _) in ProxyHeaders.all {
      for length in 0..<bytes.count { #expect(Self.read(bytes.prefix(length)) == .incomplete, "\(length) of \(bytes)") }
    }
  }

  @Test func malformedHeaderIsRefused() {
    let malformed = ProxyHeaders.malformedText.map { Array($0.utf8) } + ProxyHeaders.malformedBinary
    for bytes in malformed {
      guard case .refused(.malformed) = Self.read(bytes) else {
        Issue.record("\(String(decoding: bytes, as: UTF8.self)): \(Self.read(bytes))")
        continue
      }
    }
  }

  /// Attack: a header that never ends fills the memory.
  @Test func lengthIsBounded() {
    #expect(Self.read(Array("PROXY \(String(repeating: "x", count: 100))".utf8)) == .incomplete)
    guard case .refused = Self.read(Array("PROXY \(String(repeating: "x", count: 101))".utf8)),
      case .refused = Self.read(Array("PROXY UNKNOWN \(String(repeating: "x", count: 92))\r".utf8)),
      case .refused = Self.read(ProxyHeaders.binary(0x00, [], length: 4097))
    else {
      Issue.record("a header that is too long is refused at once")
      return
    }
    #expect(Self.read(ProxyHeaders.binary(0x00, [], length: 4096)) == .incomplete)
  }

  @Test func requestsAndHandshakesAreNoHeaders() {
    let starts = [
      "GET / HTTP/1.1", "POST / HTTP/1.1", "PUT /", "PRI * HTTP/2.0", "PROPFIND /", "PROPPATCH /", "PROXYX / HTTP/1.1",
      "proxy TCP4", "\r\nGET / HTTP/1.1", "\r\n\r\nGET / HTTP/1.1", "\u{16}\u{3}\u{1}\u{2}\u{0}", "\u{0}",
      " PROXY TCP4",
    ]
    for start in starts {
      #expect(ProxyHeader.isHeader(Self.view(Array(start.utf8))) == false, "\(start)")
      #expect(Self.read(Array(start.utf8)) == .refused(.missing))
    }
    for part in ["", "P", "PROXY", "\r", "\r\n\r\n"] {
      #expect(ProxyHeader.isHeader(Self.view(Array(part.utf8))) == nil)
    }
    for whole in [Array("PROXY x".utf8), ProxyHeaders.signature] {
      #expect(ProxyHeader.isHeader(Self.view(whole)) == true)
    }
  }

  /// What a beginning decides, more bytes do not change. Otherwise the client would depend on how the network cuts.
  @Test func laterBytesDoNotChangeTheResult() {
    var generator = SeededGenerator(seed: 541)
    for _ in 0..<20_000 {
      let bytes = ProxyHeaders.mutated(&generator)
      var decided: ProxyHeader?
      for length in 0...bytes.count {
        let result = Self.read(bytes.prefix(length))
        if let decided { #expect(result == decided, "\(length) of \(bytes)") }
        if result != .incomplete { decided = decided ?? result }
        if case .complete(let size, _) = result { #expect(size <= length && size <= 4112) }
      }
    }
  }
}

extension ProxyHeaders {
  /// A header of at most a few hundred bytes with random changes, or none, and bytes behind it.
  static func mutated(_ generator: inout SeededGenerator) -> [UInt8] {
    let malformed = malformedText.map { Array($0.utf8) } + malformedBinary
    let corpus = all.map(\.bytes).filter { $0.count < 300 } + malformed
    var bytes = corpus.randomElement(using: &generator) ?? []
    for _ in 0..<Int.random(in: 0...3, using: &generator) {
      let at = Int.random(in: 0...bytes.count, using: &generator)
      switch Int.random(in: 0..<5, using: &generator) {
      case 0 where at < bytes.count: bytes[at] = UInt8.random(in: .min ... .max, using: &generator)
      case 1 where at < bytes.count: bytes.remove(at: at)
      case 2 where at < bytes.count: bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
      case 3: bytes.insert([13, 10, 32, 0, 0x50, 0x30].randomElement(using: &generator) ?? 0, at: at)
      default: bytes.removeSubrange(at...)
      }
    }
    return bytes + (Bool.random(using: &generator) ? Array("GET /x HTTP/1.1\r\n".utf8) : [])
  }
}
