#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Parses the text of an IP address into its bytes. It is strict: no leading zeros, no abbreviated IPv4, no zone.
package enum IPAddressBytes {
  /// The host of a URL, without the brackets around an IPv6 address (RFC 3986 section 3.2.2).
  package static func withoutBrackets(_ host: String) -> String {
    host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
  }

  /// - Returns: 4 bytes, or nil if the text is not four dotted decimal numbers.
  package static func parseV4(_ text: some Collection<UInt8>) -> [UInt8]? {
    var reader = DottedReader()
    for byte in text where !reader.take(byte) { return nil }
    return reader.bytes
  }

  /// The same for a part of a request. It allocates nothing but the result: a request through a proxy has such a text.
  package static func parseV4(_ text: Span<UInt8>) -> [UInt8]? {
    var reader = DottedReader()
    for index in text.indices where !reader.take(text[index]) { return nil }
    return reader.bytes
  }

  /// - Returns: 16 bytes, or nil if the text is not an IPv6 address (RFC 4291 section 2.2).
  package static func parseV6(_ text: some Collection<UInt8>) -> [UInt8]? {
    guard text.count <= 45 else { return nil }
    var terminated = text.map { CChar(bitPattern: $0) } + [0]
    guard !terminated.dropLast().contains(0) else { return nil }
    var address = in6_addr()
    guard inet_pton(AF_INET6, &terminated, &address) == 1 else { return nil }
    return withUnsafeBytes(of: &address) { Array($0) }
  }
}

/// Reads four decimal numbers with dots between them, byte by byte.
private struct DottedReader {
  /// The finished numbers, and how many they are.
  private var finished: UInt32 = 0
  private var count = 0
  /// The number that is being read. nil if it has no digit yet.
  private var number: UInt32?

  /// - Returns: false if the text cannot be an address.
  mutating func take(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"):
      // Attack: other programs read 010 as 8. A number with a leading zero is refused.
      if number == 0 { return false }
      let next = (number ?? 0) * 10 + UInt32(byte - UInt8(ascii: "0"))
      number = next
      return next <= 255
    case UInt8(ascii: "."):
      guard let number, count < 3 else { return false }
      finished = finished << 8 | number
      count += 1
      self.number = nil
      return true
    default: return false
    }
  }

  /// nil if the text ended too early.
  var bytes: [UInt8]? {
    guard count == 3, let number else { return nil }
    return [UInt8(finished >> 16), UInt8(finished >> 8 & 0xff), UInt8(finished & 0xff), UInt8(number)]
  }
}
