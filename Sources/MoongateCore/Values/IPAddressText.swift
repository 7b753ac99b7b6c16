#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Parses IP addresses strictly: no leading zeros, no abbreviated IPv4, no zone.
package enum IPAddressText {
  /// - Returns: 4 bytes, or nil if the text is not four dotted decimal numbers.
  package static func parseV4(_ text: some Collection<UInt8>) -> [UInt8]? {
    guard text.count <= 15 else { return nil }
    var terminated = text.map { CChar(bitPattern: $0) } + [0]
    guard !terminated.dropLast().contains(0) else { return nil }
    var address = in_addr()
    guard inet_pton(AF_INET, &terminated, &address) == 1 else { return nil }
    return withUnsafeBytes(of: &address) { Array($0) }
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

  /// Parses an IPv4 or IPv6 address.
  package static func parse(_ text: some Collection<UInt8>) -> ClientAddress? {
    (parseV4(text) ?? parseV6(text)).flatMap(ClientAddress.init(bytes:))
  }
}
