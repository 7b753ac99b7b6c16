#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Reads the text of addresses, strictly: no leading zeros, no shortened IPv4, no zone.
package enum IPAddressText {
  /// - Returns: 4 bytes, or nil where it is no dotted address of four decimal numbers.
  package static func parseV4(_ text: some Collection<UInt8>) -> [UInt8]? {
    guard text.count <= 15 else { return nil }
    var terminated = text.map { CChar(bitPattern: $0) } + [0]
    guard !terminated.dropLast().contains(0) else { return nil }
    var address = in_addr()
    guard inet_pton(AF_INET, &terminated, &address) == 1 else { return nil }
    return withUnsafeBytes(of: &address) { Array($0) }
  }

  /// - Returns: 16 bytes, or nil where it is no IPv6 address (RFC 4291 section 2.2).
  package static func parseV6(_ text: some Collection<UInt8>) -> [UInt8]? {
    guard text.count <= 45 else { return nil }
    var terminated = text.map { CChar(bitPattern: $0) } + [0]
    guard !terminated.dropLast().contains(0) else { return nil }
    var address = in6_addr()
    guard inet_pton(AF_INET6, &terminated, &address) == 1 else { return nil }
    return withUnsafeBytes(of: &address) { Array($0) }
  }

  /// An address of either kind.
  package static func parse(_ text: some Collection<UInt8>) -> ClientAddress? {
    (parseV4(text) ?? parseV6(text)).flatMap(ClientAddress.init(bytes:))
  }
}
