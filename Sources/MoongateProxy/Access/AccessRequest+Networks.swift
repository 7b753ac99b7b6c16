import MoongateCore

/// Requests that need no session because of the client's network (`allow.networks`).
extension AccessRequest {
  /// Whether the route needs no session from the client of the request.
  func needsNoSession(on route: RoutePlan, _ plan: GenerationPlan) -> Bool {
    route.rule.isOpen
      || route.hasOpenNetworks && route.rule.isOpen(to: origin.address, at: origin.host.name, in: plan.settings)
  }

  /// Whether a request that only reads may be the handshake of a WebSocket, about which a proxy asks.
  ///
  /// Attack: a page of another site opens a WebSocket, a GET whose answer it reads (RFC 6455 section 10.2). Proxies do
  /// not tell `Upgrade`, and browsers send Sec-Fetch-Mode only to secure origins. Handshakes always have an Origin,
  /// and navigations, images and links by GET have none. The proxy of the data path sees the upgrade itself.
  var mayOpenTunnel: Bool { isForwarded && head.count(of: .origin) > 0 }

  /// Whether a page of a site that is not the operator's sent the request.
  ///
  /// Attack: a user in an open network reads a page of another site, which sends a form to the service, or opens a
  /// WebSocket to it. The browser needs no cookie for that: the address is enough. Pages of the operator's other hosts
  /// are passed, as with a session, whose cookie their requests carry. Programs send neither Sec-Fetch-Site nor Origin.
  func isOfForeignPage(_ plan: GenerationPlan) -> Bool {
    // Fetch Metadata: no page can set this header. Unlike Origin, it is not `null` if the page has a referrer policy.
    if let site = head.fetchSite { return !["same-origin", "same-site", "none"].contains(site) }
    guard head.count(of: .origin) > 0, !hasRightOrigin(plan) else { return false }
    guard head.count(of: .origin) == 1, let field = head.first(.origin) else { return true }
    let text = head.text(field.value)
    guard let scheme = text.firstRange(of: "://"), ["http", "https"].contains(text[..<scheme.lowerBound]),
      let host = HostName(String(text[scheme.upperBound...]))
    else { return true }
    // An IP address may be any machine of the network, so it counts only as the request's own.
    return !plan.settings.isOperatorDomain(host.name)
  }
}
