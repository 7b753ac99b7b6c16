/// Who a request comes from and by which name it reached us, as far as the peer may be believed (http.md, "Proxy").
///
/// Attack: anyone can send `X-Forwarded-For: 127.0.0.1` to be somebody else, or a fresh address for each guess. Only a
/// peer in `trusted_proxies` is listened to, and of its list only what trusted proxies added: it is read from the right
/// and no further than the first address that is none of theirs, so that rubbish to the left of it cannot spoil it.
package struct ForwardedClient: Sendable, Hashable {
  /// The client's.
  package let address: ClientAddress
  package let isSecure: Bool
  /// The host that the client asked for; nil where it is missing or malformed.
  package let host: HostName?

  /// - Parameters:
  ///   - peer: who the connection is with.
  ///   - isSecure: whether the connection itself is TLS.
  ///   - host: the value of the request's only Host.
  ///   - forwardedFor, forwardedProto, forwardedHost: the values of these fields, one per line, in order.
  package init(
    peer: ClientAddress, trusted: [AddressBlock], isSecure: Bool, host: String?, forwardedFor: [String],
    forwardedProto: [String],
    forwardedHost: [String]
  ) {
    let own = host.flatMap { HostName($0) }
    guard Self.trusts(peer, trusted) else {
      self.address = peer
      self.isSecure = isSecure
      self.host = own
      return
    }
    address = Self.origin(of: forwardedFor, trusted: trusted) ?? peer
    switch forwardedProto.count == 1 ? forwardedProto[0].lowercased() : "" {
    case "https": self.isSecure = true
    case "http": self.isSecure = false
    default: self.isSecure = isSecure
    }
    self.host = (forwardedHost.count == 1 ? HostName(forwardedHost[0]) : nil) ?? own
  }

  /// The origin that the client asked for, in its one spelling (RFC 6454 section 6.2): scheme, host, and a port that is
  /// not the scheme's own.
  package var origin: String? {
    guard let host else { return nil }
    let port = host.port.flatMap { $0 == (isSecure ? 443 : 80) ? nil : ":\($0)" } ?? ""
    return "\(isSecure ? "https" : "http")://\(host.name)\(port)"
  }

  /// Whether the peer may say whom it speaks for.
  package static func trusts(_ peer: ClientAddress, _ trusted: [AddressBlock]) -> Bool {
    trusted.contains { peer.isIn($0) }
  }

  /// The rightmost address of the list that is no trusted proxy's; nil where the list cannot be read that far.
  private static func origin(of lines: [String], trusted: [AddressBlock]) -> ClientAddress? {
    for line in lines.reversed() {
      for item in line.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false).reversed() {
        let space: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
        let text = item.drop(while: space).reversed().drop(while: space).reversed()
        guard let address = IPAddressText.parse(Array(text)) else { return nil }
        if !trusts(address, trusted) { return address }
      }
    }
    return nil
  }
}
