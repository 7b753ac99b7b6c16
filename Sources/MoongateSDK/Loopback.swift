import Foundation

/// Hosts that can only be reached from this machine.
public enum Loopback {
  /// Whether the host is this machine: `localhost` and names below it (RFC 6761 section 6.3), 127.0.0.0/8 and ::1.
  /// - Parameter host: in lower case; an IPv6 address with or without brackets.
  public static func contains(_ host: String) -> Bool { host.hasSuffix(".localhost") || isAddress(host) }

  /// Whether the host of a web address is this machine; false for a text that is none.
  public static func containsHost(of address: String) -> Bool {
    URLComponents(string: address)?.host.map { contains($0.lowercased()) } ?? false
  }

  /// Whether the host is `localhost`, in 127.0.0.0/8 or ::1. Names below `localhost` do not count, because they can
  /// resolve to any address.
  ///
  /// Attack: `127.example.com` is an ordinary name that can resolve to any address.
  /// - Parameter host: in lower case; an IPv6 address with or without brackets.
  package static func isAddress(_ host: String) -> Bool {
    if host == "localhost" { return true }
    if let bytes = IPAddressBytes.parseV4(host.utf8) { return isAddress(bytes) }
    let inner = IPAddressBytes.withoutBrackets(host)
    return IPAddressBytes.parseV6(inner.utf8).map { isAddress($0) } ?? false
  }

  /// Whether the address is in 127.0.0.0/8 or is ::1.
  /// - Parameter bytes: 4 or 16 bytes.
  package static func isAddress(_ bytes: [UInt8]) -> Bool {
    bytes.count == 4 ? bytes.first == 127 : bytes == [UInt8](repeating: 0, count: 15) + [1]
  }
}
