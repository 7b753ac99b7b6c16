import Testing

@testable import MoongateProxy

/// Parsing the ALPN extension of a ClientHello, including malformed input.
@Suite struct ClientHelloTests {
  private static func word(_ number: Int) -> [UInt8] { [UInt8(number >> 8), UInt8(number & 255)] }

  private static func vector(_ bytes: [UInt8]) -> [UInt8] { word(bytes.count) + bytes }

  private static func alpn(_ names: [String]) -> [UInt8] {
    word(16) + vector(vector(names.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }))
  }

  /// A handshake message with these extensions.
  private static func hello(_ extensions: [UInt8], type: UInt8 = 1) -> [UInt8] {
    let body =
      [3, 3] + [UInt8](repeating: 7, count: 32) + [32] + [UInt8](repeating: 8, count: 32) + vector([0x13, 0x01]) + [
        1, 0,
      ] + vector(extensions)
    return [type, 0] + word(body.count) + body
  }

  private static func records(_ message: [UInt8], of size: Int = 16_384) -> [UInt8] {
    stride(from: 0, to: message.count, by: size).flatMap {
      [22, 3, 1] + vector(Array(message[$0..<min($0 + size, message.count)]))
    }
  }

  private static func names(_ bytes: [UInt8]) -> [String]? {
    guard case .offered(let names) = ClientHello.offeredProtocols(bytes) else { return nil }
    return names.map { String(decoding: $0, as: UTF8.self) }
  }

  private static let other: [UInt8] = word(0) + vector([0, 0, 0]) + word(0x0a0a) + vector([])

  @Test(arguments: [["h2"], ["http/1.1", "h2"], ["smtp"], ["\u{0}", "h2"]]) func protocolsAreFoundAmongOtherExtensions(
    _ names: [String]
  ) {
    #expect(Self.names(Self.records(Self.hello(Self.other + Self.alpn(names) + Self.other))) == names)
  }

  @Test(arguments: [1, 3, 100, 16_384]) func aMessageMayComeInAnyNumberOfRecords(_ size: Int) {
    #expect(Self.names(Self.records(Self.hello(Self.alpn(["h2"])), of: size) + [20, 3, 3]) == ["h2"])
  }

  @Test func truncatedHelloIsIncomplete() {
    let whole = Self.records(Self.hello(Self.other + Self.alpn(["h2"])), of: 50)
    for length in 0..<whole.count {
      #expect(ClientHello.offeredProtocols(whole.prefix(length)) == .incomplete, "\(length)")
    }
  }

  @Test func withoutTheExtensionNothingIsOffered() {
    #expect(ClientHello.offeredProtocols(Self.records(Self.hello(Self.other))) == .notOffered)
  }

  /// Each is passed to the TLS library, which refuses it.
  @Test(arguments: [
    Array("GET / HTTP/1.1\r\n".utf8), [22, 2, 0, 0, 1, 1], [22, 3, 1, 0, 0], records(hello(alpn(["h2"]), type: 2)),
    [22, 3, 1, 0, 4, 1, 255, 255, 255],
    // Lengths beyond their vector: of the list, of a name, of the extension; and an empty name.
    records(hello(word(16) + vector(word(9) + [2, 0x68, 0x32]))),
    records(hello(word(16) + vector(vector([9, 0x68, 0x32])))),
    records(hello(word(16) + word(99) + [0, 3])), records(hello(word(16) + vector(vector([0])))),
    records(hello([0, 16, 0])),
    records([1, 0, 0, 4, 3, 3, 1, 1]),
  ]) func unparsableBytesAreNotAClientHello(_ bytes: [UInt8]) {
    #expect(ClientHello.offeredProtocols(bytes) == .notOffered)
  }

  @Test func heldBytesAreBounded() {
    let endless = [22, 3, 1] as [UInt8] + Self.word(16_384) + [1, 0, 0x40, 0] + [UInt8](repeating: 0, count: 16_380)
    #expect(ClientHello.offeredProtocols(endless + endless + endless) != .incomplete)
  }
}
