import MoongateSDK

/// A member of `X-Forwarded-For`: an address, which may be in quotes or brackets and may have a port, as proxies write
/// it (RFC 7239 section 6).
package enum ForwardedNode {
  /// - Returns: the address without the port; nil if the member is no address, such as `unknown`.
  package static func address(_ member: Span<UInt8>) -> ClientAddress? {
    var range = 0..<member.count
    if range.count > 1, member[0] == UInt8(ascii: "\""), member[range.upperBound - 1] == UInt8(ascii: "\"") {
      range = 1..<range.upperBound - 1
    }
    guard !range.isEmpty else { return nil }
    if member[range.lowerBound] == UInt8(ascii: "[") {
      guard let close = range.first(where: { member[$0] == UInt8(ascii: "]") }), isPort(member, close + 1, range)
      else { return nil }
      return IPAddressBytes.parseV6(bytes(member, range.lowerBound + 1..<close)).flatMap(ClientAddress.init(bytes:))
    }
    // An IPv6 address without brackets has no port: the port could not be told from the address.
    guard let colon = range.first(where: { member[$0] == UInt8(ascii: ":") }),
      !(colon + 1..<range.upperBound).contains(where: { member[$0] == UInt8(ascii: ":") })
    else {
      return IPAddressBytes.parseV4(member.extracting(range)).flatMap(ClientAddress.init(bytes:))
        ?? IPAddressText.parse(bytes(member, range))
    }
    guard isPort(member, colon, range) else { return nil }
    return IPAddressBytes.parseV4(member.extracting(range.lowerBound..<colon)).flatMap(ClientAddress.init(bytes:))
  }

  /// Whether the rest of the member is empty, or `:` and a port. An empty port is no port (RFC 3986 section 3.2.3); a
  /// port may also be obfuscated (RFC 7239 section 6.3).
  private static func isPort(_ member: Span<UInt8>, _ start: Int, _ range: Range<Int>) -> Bool {
    guard start < range.upperBound else { return true }
    guard member[start] == UInt8(ascii: ":") else { return false }
    let port = start + 1..<range.upperBound
    guard let first = port.first else { return true }
    if member[first] != UInt8(ascii: "_") {
      return port.count <= 5 && port.allSatisfy { isDigit(member[$0]) }
    }
    return port.count > 1
      && port.allSatisfy { index in
        let byte = member[index]
        return isDigit(byte) || (0x61...0x7a).contains(byte | 0x20) || "._-".utf8.contains(byte)
      }
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

  private static func bytes(_ member: Span<UInt8>, _ range: Range<Int>) -> [UInt8] {
    var copy: [UInt8] = []
    copy.reserveCapacity(range.count)
    for index in range { copy.append(member[index]) }
    return copy
  }
}
