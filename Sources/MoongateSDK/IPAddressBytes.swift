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
}
