import MoongateCore
import MoongateSDK
import NIOCore

/// What the first bytes of a connection are in the PROXY protocol, version 1 (text) or 2 (binary): sections 2.1 and 2.2
/// of HAProxy's proxy-protocol.txt.
enum ProxyHeader: Equatable {
  /// More bytes are needed.
  case incomplete
  case refused(ProxyHeaderFault)
  /// - Parameters:
  ///   - length: the length of the header in bytes. What follows is the client's.
  ///   - client: the address of the client; nil if the header states none. The connection is then the proxy's own, or
  ///     its client has no IP address.
  case complete(length: Int, client: ClientAddress?)

  /// The maximum length of a text header, with its CRLF.
  private static let maxText = 107
  /// The maximum number of bytes after the first 16 of a binary header: addresses, and extensions, which are ignored.
  private static let maxBinary = 4096

  private static let text = Array("PROXY ".utf8)
  private static let binary: [UInt8] = [13, 10, 13, 10, 0, 13, 10, 0x51, 0x55, 0x49, 0x54, 10]

  /// Whether the bytes begin like a header; nil if more bytes decide. No request and no TLS handshake does.
  static func isHeader(_ bytes: ByteBufferView) -> Bool? {
    for signature in [text, binary] {
      if bytes.starts(with: signature) { return true }
      if bytes.count < signature.count, signature.starts(with: bytes) { return nil }
    }
    return false
  }

  /// - Parameter bytes: all bytes of the connection so far.
  static func read(_ bytes: ByteBufferView) -> ProxyHeader {
    switch isHeader(bytes) {
    case nil: .incomplete
    case false?: .refused(.missing)
    case true?: bytes.first == text[0] ? readText(bytes) : readBinary(bytes)
    }
  }

  private static func malformed(_ part: String) -> ProxyHeader { .refused(.malformed(part: part)) }

  // MARK: version 1

  private static func readText(_ bytes: ByteBufferView) -> ProxyHeader {
    let line = bytes.prefix(maxText)
    let (cr, lf) = (UInt8(ascii: "\r"), UInt8(ascii: "\n"))
    let end = line.firstIndex { $0 == cr || $0 == lf }
    // The last byte may be the first half of the CRLF.
    guard let end, end + 1 < line.endIndex else {
      return line.count < maxText ? .incomplete : malformed("a line of more than \(maxText) bytes")
    }
    guard line[end] == cr, line[end + 1] == lf else { return malformed("a line that does not end with CRLF") }
    let length = end + 2 - bytes.startIndex
    let fields = line[(bytes.startIndex + text.count)..<end]
      .split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
    let parse: (ByteBufferView) -> ClientAddress?
    switch String(decoding: fields[0], as: UTF8.self) {
    case "UNKNOWN": return .complete(length: length, client: nil)
    case "TCP4": parse = { IPAddressBytes.parseV4($0).flatMap { ClientAddress(bytes: $0) } }
    case "TCP6": parse = { IPAddressBytes.parseV6($0).flatMap { ClientAddress(bytes: $0) } }
    default: return malformed("a protocol other than TCP4, TCP6 and UNKNOWN")
    }
    guard fields.count == 5 else { return malformed("not two addresses and two ports") }
    guard let client = parse(fields[1]), parse(fields[2]) != nil else { return malformed("an address") }
    guard isPort(fields[3]), isPort(fields[4]) else { return malformed("a port") }
    return .complete(length: length, client: client.isStated ? client : nil)
  }

  private static func isPort(_ text: ByteBufferView) -> Bool {
    guard (1...5).contains(text.count), text.allSatisfy({ (0x30...0x39).contains($0) }),
      text.count == 1 || text.first != 0x30
    else { return false }
    return text.reduce(0) { $0 * 10 + Int($1 - 0x30) } <= 65_535
  }

  // MARK: version 2

  private static func readBinary(_ bytes: ByteBufferView) -> ProxyHeader {
    guard bytes.count >= 16 else { return .incomplete }
    let start = bytes.startIndex
    let length = Int(bytes[start + 14]) << 8 | Int(bytes[start + 15])
    guard length <= maxBinary else { return malformed("\(length) bytes of addresses and extensions") }
    let isLocal = bytes[start + 12] == 0x20
    guard isLocal || bytes[start + 12] == 0x21 else { return malformed("an unknown version or command") }
    // The family of a LOCAL connection is not read.
    guard let size = isLocal ? (client: 0, all: 0) : addressSize(bytes[start + 13]) else {
      return malformed("an unknown address family or transport")
    }
    guard length >= size.all else { return malformed("\(length) bytes for addresses of \(size.all)") }
    guard bytes.count >= 16 + length else { return .incomplete }
    let client = ClientAddress(bytes: Array(bytes[(start + 16)..<(start + 16 + size.client)]))
    return .complete(length: 16 + length, client: client.flatMap { $0.isStated ? $0 : nil })
  }

  /// The sizes of the client's address and of all addresses with their ports, in bytes.
  /// - Parameter kind: the address family and the transport.
  /// - Returns: nil for a value without a meaning. The client's address has no bytes if it is none of IP.
  private static func addressSize(_ kind: UInt8) -> (client: Int, all: Int)? {
    guard kind & 0x0f <= 2 else { return nil }
    switch (kind >> 4, kind & 0x0f) {
    case (0...3, 0), (0, _): return (0, 0)
    case (1, _): return (4, 12)
    case (2, _): return (16, 36)
    case (3, _): return (0, 216)
    default: return nil
    }
  }
}

extension ClientAddress {
  /// Whether a header that names the address states one: `0.0.0.0` and `::` stand for an unknown address.
  fileprivate var isStated: Bool { bytes.contains { $0 != 0 } }
}
