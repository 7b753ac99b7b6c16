/// Hosts that only this machine reaches.
package enum Loopback {
  /// Whether the text names this machine: `localhost` and names below it (RFC 6761 section 6.3), 127.0.0.0/8 and ::1.
  /// - Parameter host: in lower case; an IPv6 address with or without brackets.
  package static func contains(_ host: String) -> Bool { host.hasSuffix(".localhost") || isAddress(host) }

  /// Attack: `127.example.com` is a name like any other.
  fileprivate static func isAddress(_ host: String) -> Bool {
    if host == "localhost" { return true }
    if let bytes = IPAddressText.parseV4(Array(host.utf8)) { return bytes.first == 127 }
    let inner = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
    return IPAddressText.parseV6(Array(inner.utf8)) == [UInt8](repeating: 0, count: 15) + [1]
  }
}

extension ListenAddress {
  /// Whether nobody on another machine can connect to it. A name below `localhost` may be any address here.
  package var isLoopback: Bool { Loopback.isAddress(host.lowercased()) }
}

extension PublicURL {
  /// Whether it leads to the machine of whoever opens it.
  package var isLoopback: Bool { Loopback.contains(host) }
}
