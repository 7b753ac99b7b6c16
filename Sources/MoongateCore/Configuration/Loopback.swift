/// Hosts that can only be reached from this machine.
package enum Loopback {
  /// Whether the host is this machine: `localhost` and names below it (RFC 6761 section 6.3), 127.0.0.0/8 and ::1.
  /// - Parameter host: in lower case; an IPv6 address with or without brackets.
  package static func contains(_ host: String) -> Bool { host.hasSuffix(".localhost") || isAddress(host) }

  /// Attack: `127.example.com` is an ordinary name that can resolve to any address.
  fileprivate static func isAddress(_ host: String) -> Bool {
    if host == "localhost" { return true }
    if let bytes = IPAddressText.parseV4(Array(host.utf8)) { return bytes.first == 127 }
    let inner = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
    return IPAddressText.parseV6(Array(inner.utf8)) == [UInt8](repeating: 0, count: 15) + [1]
  }
}

extension ListenAddress {
  /// Whether only this machine can connect to it. Names below `localhost` do not count, because they can resolve to any
  /// address.
  package var isLoopback: Bool { Loopback.isAddress(host.lowercased()) }
}

extension PublicURL {
  /// Whether it refers to the machine of the user who opens it.
  package var isLoopback: Bool { Loopback.contains(host) }
}
