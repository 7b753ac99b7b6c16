import MoongateSDK

/// `allow.networks`: the clients for which a route needs no session.
///
/// The proxy, forward-auth, the shadow and the cases of tests/ all decide by this file.
extension Route {
  /// Whether the route needs no session from a client: it is open to all requests, or to the client's network.
  ///
  /// An address counts only if it is the client's own:
  ///
  /// - Attack: a proxy does not send `X-Forwarded-For`, or sends one that cannot be read. All its clients then have the
  ///   proxy's address, which is usually in the internal network. The address of a trusted proxy therefore never
  ///   counts, and neither does 0.0.0.0, which stands for a connection without an address (a Unix socket).
  /// - Attack: DNS rebinding. A user in the network reads a page of evil.example, whose address changes to the
  ///   gateway's. The browser then lets the page read every answer of the gateway. Therefore the host of the request
  ///   must be one that only the operator can point to the gateway (`isOperatorHost`), or the route names it.
  /// - Parameters:
  ///   - client: the client's address, read by `ForwardedClient` if the request came through a proxy.
  ///   - host: the host of the request in canonical form (`HostName.name`).
  package func isOpen(to client: ClientAddress, at host: String, in settings: GatewaySettings) -> Bool {
    if isOpen { return true }
    guard openNetworks.contains(where: { client.isIn($0) }), client != .unspecified,
      !ForwardedClient.trusts(client, settings.trustedProxies)
    else { return false }
    return self.host != nil || settings.isOperatorHost(host)
  }
}

extension GatewaySettings {
  /// Whether only the operator controls where the host leads: a host of `isOperatorDomain`, `localhost`, or an IP
  /// address, which needs no DNS.
  /// - Parameter host: in canonical form (`HostName.name`).
  package func isOperatorHost(_ host: String) -> Bool {
    isOperatorDomain(host) || host == "localhost" || host.hasPrefix("[") || IPAddressBytes.parseV4(host.utf8) != nil
  }

  /// Whether the host is the one of `public_url`, or below `cookie_domain` or one of `domains`.
  /// - Parameter host: in canonical form (`HostName.name`).
  package func isOperatorDomain(_ host: String) -> Bool {
    if host == publicURL.host { return true }
    let roots = domains + (cookieDomain.map { [$0] } ?? [])
    return roots.contains { host == $0 || host.hasSuffix("." + $0) }
  }
}
