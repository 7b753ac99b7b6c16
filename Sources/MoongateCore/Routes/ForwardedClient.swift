/// The client of a request and the host name that it used. Forwarding headers count only if the peer is trusted.
///
/// Attack: anyone can send `X-Forwarded-For: 127.0.0.1` to be someone else, or a fresh address for each guess. The
/// headers are only read from a peer in `trusted_proxies`, and of the list only what trusted proxies added: it is read
/// from the right up to the first address that is not a trusted proxy, so that garbage to the left of it has no effect.
package struct ForwardedClient: Sendable, Hashable {
  /// The client's address.
  package let address: ClientAddress
  package let isSecure: Bool
  /// The host that the client asked for; nil if it is missing or malformed.
  package let host: HostName?

  /// More than five parameters: the connection, and the headers that it judges.
  /// - Parameters:
  ///   - peer: the address of the connection's peer.
  ///   - isSecure: whether the connection itself uses TLS.
  ///   - host: the value of the request's only Host header.
  ///   - forwardedFor, forwardedProto, forwardedHost: the values of these headers, one per line, in order.
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

  /// The origin that the client asked for.
  package var origin: String? { host?.origin(isSecure: isSecure) }

  /// Whether the peer is a trusted proxy.
  package static func trusts(_ peer: ClientAddress, _ trusted: [AddressBlock]) -> Bool {
    trusted.contains { peer.isIn($0) }
  }

  /// The rightmost address in the list that is not a trusted proxy; nil if the list is malformed before that.
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
