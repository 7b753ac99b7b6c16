/// The client of a request and the host name that it used. Forwarding headers count only if the peer is trusted.
///
/// Attack: anyone can send `X-Forwarded-For: 127.0.0.1` to be someone else, or a fresh address for each guess. The
/// headers are only read from a peer in `trusted_proxies`, and of the list only what trusted proxies added: it is read
/// from the right up to the first address that is not a trusted proxy, so that garbage to the left of it has no effect.
package struct ForwardedClient: Sendable, Hashable {
  /// The client's address.
  package private(set) var address: ClientAddress
  package private(set) var isSecure: Bool
  /// The host that the client asked for; nil if it is missing or malformed.
  package private(set) var host: HostName?
  /// Why `X-Forwarded-For` was not read. The address is then the peer's, which stands for everybody behind the proxy.
  package private(set) var addressFault: ForwardingFault?

  /// A client that is the peer itself.
  /// - Parameters:
  ///   - isSecure: whether the connection uses TLS.
  ///   - host: the host of the request.
  package init(peer: ClientAddress, isSecure: Bool, host: HostName?) {
    address = peer
    self.isSecure = isSecure
    self.host = host
  }

  /// Reads the forwarding headers if the peer is a trusted proxy. They replace what the connection says.
  /// - Parameter bytes: the bytes in which the fields are.
  /// - Throws: a fault if scheme or host cannot be read. The address is set then.
  package mutating func read(_ fields: ForwardingFields, _ bytes: Span<UInt8>, trusted: [AddressBlock])
    throws(ForwardingFault)
  {
    guard Self.trusts(address, trusted) else { return }
    do throws(ForwardingFault) {
      address = try fields.address(bytes, trusted: trusted) ?? address
    } catch {
      addressFault = error
    }
    isSecure = try fields.isSecure(bytes) ?? isSecure
    guard let named = try fields.host(bytes) else { return }
    guard let found = HostName(bytes.extracting(named)) else { throw ForwardingFault(.host, bytes, named) }
    host = found
  }

  /// The origin that the client asked for.
  package var origin: String? { host?.origin(isSecure: isSecure) }

  /// Whether the peer is a trusted proxy.
  package static func trusts(_ peer: ClientAddress, _ trusted: [AddressBlock]) -> Bool {
    trusted.contains { peer.isIn($0) }
  }
}
