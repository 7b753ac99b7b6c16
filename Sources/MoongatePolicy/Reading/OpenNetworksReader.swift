import MoongateCore

/// Reads `allow` of a route: a flag, or `{ networks = { "10.0.0.0/8" } }`.
struct OpenNetworksReader {
  /// Nil if gateway.lua could not be read.
  let gateway: GatewaySettings?
  let problems: Problems

  /// - Returns: whether the route is open to all, and the addresses for which it is open otherwise.
  func read(_ reader: TableReader) -> (isOpen: Bool, networks: [AddressBlock]) {
    let path = reader.path("allow")
    guard let node = reader.take("allow") else { return (false, []) }
    switch node.value {
    case .flag(let isOpen): return (isOpen, [])
    case .table:
      guard let table = TableReader(node, .routeAllow, path: path, problems: problems),
        let list = table.take("networks"), let texts = Field.texts(list, table.path("networks"), problems)
      else { return (false, []) }
      if list.isEmptyTable {
        problems.add(
          list.location, table.path("networks"), "is empty: name a block such as \"10.0.0.0/8\", or leave `allow` out")
      }
      let networks = texts.enumerated().compactMap { block($1, "\(table.path("networks"))[\($0 + 1)]") }
      warnOfForgedAddresses(list, table.path("networks"))
      refuseUnknownClients(list, table.path("networks"))
      return (false, networks)
    default:
      problems.add(
        node.location, path, "must be true, false or { networks = { \"10.0.0.0/8\" } }, not \(node.value.described)")
      return (false, [])
    }
  }

  private func block(_ item: (text: String, node: LuaNode), _ path: String) -> AddressBlock? {
    guard let block = AddressBlock(item.text) else {
      problems.add(
        item.node.location, path,
        "\"\(item.text)\" is not an address block, such as \"192.0.2.7/32\" or \"10.0.0.0/8\"")
      return nil
    }
    if block.prefix == 0 {
      problems.add(
        item.node.location, path, "\"\(item.text)\" is every address: write allow = true to open the route to all")
    }
    if let proxies = gateway?.trustedProxies.first(where: { $0.contains(block) }), !proxies.isWide {
      problems.warn(
        item.node.location, path,
        "opens the route to no client: \(block) is within \(proxies) of trusted_proxies, whose addresses are those of proxies"
      )
    }
    return block
  }

  /// Attack: with a trusted block that contains other people's machines, any of them names an address of the networks
  /// in X-Forwarded-For, and needs no session.
  private func warnOfForgedAddresses(_ list: LuaNode, _ path: String) {
    guard let wide = gateway?.trustedProxies.first(where: \.isWide) else { return }
    problems.warn(
      list.location, path,
      "trusted_proxies has \(wide), so every machine there can claim one of these addresses and needs no session: name only the addresses of your own proxies there"
    )
  }

  /// Attack: a proxy that is not in trusted_proxies ends TLS in front of the gateway. All clients then have the proxy's
  /// address, which is usually in the internal network, and nobody needs a session.
  private func refuseUnknownClients(_ list: LuaNode, _ path: String) {
    guard let gateway, gateway.publicURL.isSecure, gateway.tls == nil, gateway.trustedProxies.isEmpty else { return }
    problems.add(
      list.location, path,
      "requires `trusted_proxies` in gateway.lua: public_url is https and `tls` is missing, so a proxy is in front, whose address all clients would have"
    )
  }
}

extension AddressBlock {
  /// Whether all addresses of the other block are in this one.
  fileprivate func contains(_ other: AddressBlock) -> Bool {
    other.prefix >= prefix && ClientAddress(bytes: other.network)?.isIn(self) ?? false
  }
}
