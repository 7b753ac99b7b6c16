import MoongateCore
import MoongateSDK

/// Judges whether `X-Forwarded-For` is believed only from the proxies that set it.
extension Judgement {
  /// What is known about the proxies in front of the gateway.
  struct Forwarding {
    /// How the probe arrived.
    let report: ForwardingReport
    /// Whether an address is one of this machine's, from which the probe was sent.
    let isOwn: (String) -> Bool
  }

  /// - Parameter forwarding: what the gateway saw of a probe; nil if it answered none.
  static func proxies(_ gateway: GatewaySettings, _ forwarding: Forwarding? = nil) -> Finding {
    let all = gateway.trustedProxies
    // Attack: with a wide block, any client can claim any address, and limits per address have no effect.
    if let wide = all.first(where: \.isWide) {
      return .failed(
        "proxies", "trusted_proxies has \(wide): every machine there can claim to be any client.",
        fix: "Name only the addresses of your own proxies.")
    }
    if let forwarding { return measured(gateway, forwarding) }
    if gateway.needsProxy, all.isEmpty {
      return .failed(
        "proxies",
        "\(gateway.publicURL) needs a TLS proxy, but trusted_proxies is empty: all users count as one client.",
        fix: "Add the proxy's address, for example trusted_proxies = { \"127.0.0.1/32\" }.")
    }
    if gateway.listen.isLoopback, !all.isEmpty, !all.contains(where: { Loopback.isAddress($0.network) }) {
      return .failed(
        "proxies",
        "The gateway listens on \(gateway.listen), which only this machine can reach, but trusted_proxies contains no address of this machine.",
        fix: "Add \"127.0.0.1/32\" to trusted_proxies.")
    }
    let belief =
      all.isEmpty
      ? "X-Forwarded-For is ignored: clients connect to the gateway directly."
      : "\(gateway.takesProxyProtocol ? "A PROXY protocol header" : "X-Forwarded-For") is trusted only from \(list(all))."
    return .ok("proxies", "\(belief) This was not tried, because the gateway did not answer at public_url.")
  }

  private static func measured(_ gateway: GatewaySettings, _ forwarding: Forwarding) -> Finding {
    let report = forwarding.report
    let trusts = { (text: String) in
      IPAddressText.parse(text.utf8).map { ForwardedClient.trusts($0, gateway.trustedProxies) } ?? false
    }
    let addresses = report.addresses
    let claim = addresses.lastIndex(of: ForwardingProbe.claimed)
    // What the proxies added to the claim, or wrote in its place.
    let added = claim.map { Array(addresses[($0 + 1)...]) } ?? addresses
    let isProxied = gateway.needsProxy || claim == nil || !added.isEmpty
    guard trusts(report.peer) else {
      if gateway.takesProxyProtocol, claim != nil, added.isEmpty { return stated(gateway, report) }
      return isProxied
        ? .failed(
          "proxies",
          "A request to \(gateway.publicURL) came from a proxy at \(report.peer), which trusted_proxies does not name: all users count as one client.",
          fix: "Add \"\(report.peer)\" to trusted_proxies if it is your proxy.")
        : .ok("proxies", "X-Forwarded-For is ignored: a claim to be \(ForwardingProbe.claimed) had no effect.")
    }
    if addresses.isEmpty {
      return .failed(
        "proxies", "The proxy at \(report.peer) sends no X-Forwarded-For: all users count as one client.",
        fix: setHeader)
    }
    // The gateway reads no further than the last address that is not a trusted proxy.
    if let garbage = added.last(where: { !trusts($0) }), IPAddressText.parse(garbage.utf8) == nil {
      return .failed(
        "proxies",
        "The proxy at \(report.peer) sends X-Forwarded-For with \(garbage), which is not an address: all users count as one client.",
        fix: setHeader)
    }
    if report.client == ForwardingProbe.claimed {
      return believedClaim(gateway, forwarding, passedOnBy: added.first ?? report.peer, isAlone: added.isEmpty)
    }
    if let first = addresses.first, report.client == report.peer, !forwarding.isOwn(first) {
      return .warning(
        "proxies",
        "A request to \(gateway.publicURL) counts as one of the proxy at \(report.peer), because X-Forwarded-For names only proxies (\(addresses.joined(separator: ", "))): all users count as one client.",
        fix: "Let each proxy after the first one append to the header, in nginx with "
          + "`proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;`.")
    }
    if let origin = report.origin, origin != gateway.publicURL.description {
      return .warning(
        "proxies", "A request to \(gateway.publicURL) arrives as one to \(origin).",
        fix: "Let the proxy set X-Forwarded-Proto to the scheme of the client, and pass its Host on.")
    }
    return .ok(
      "proxies",
      "X-Forwarded-For is believed only from \(list(gateway.trustedProxies)): a claim to be \(ForwardingProbe.claimed) had no effect."
    )
  }

  /// A PROXY protocol header named a client, whose forwarding headers have no effect.
  private static func stated(_ gateway: GatewaySettings, _ report: ForwardingReport) -> Finding {
    if let origin = report.origin, origin != gateway.publicURL.description {
      return .failed(
        "proxies",
        "A request to \(gateway.publicURL) arrives as one to \(origin), because a PROXY protocol header does not tell the scheme of the client.",
        fix: "Set `tls` in gateway.lua, and let the proxy pass the client's TLS on as it is.")
    }
    return .ok(
      "proxies",
      "A request to \(gateway.publicURL) came from \(report.peer), and a claim to be \(ForwardingProbe.claimed) had no effect."
    )
  }

  /// The claim counted. That is right only if this machine, which made it, is itself a trusted proxy.
  /// - Parameters:
  ///   - passedOnBy: the address that sent the claim to a trusted proxy or to the gateway.
  ///   - isAlone: whether no proxy added an address to the claim.
  private static func believedClaim(
    _ gateway: GatewaySettings, _ forwarding: Forwarding, passedOnBy sender: String, isAlone: Bool
  ) -> Finding {
    // A socket of systemd may replace `listen`, so the port says nothing about a gateway with TLS of its own.
    let isDirect = gateway.tls != nil || !gateway.needsProxy && gateway.publicURL.port == gateway.listen.port
    if forwarding.isOwn(sender), !isAlone || isDirect {
      return .ok(
        "proxies",
        "X-Forwarded-For is believed only from \(list(gateway.trustedProxies)). \(sender) of this machine is among them, so only a doctor on another machine can try whether claims of clients have no effect."
      )
    }
    // Attack: a client sends a new address with each guess, and no limit per address ever counts to two.
    return .failed(
      "proxies",
      "A request to \(gateway.publicURL) that claimed to come from \(ForwardingProbe.claimed) was believed: the proxy at \(sender) passes X-Forwarded-For on, so every client can claim any address.",
      fix: setHeader)
  }

  /// - Parameter isBelieved: whether the gateway judged the host in `Host`, and not the one in the target.
  static func judgedHost(of probe: HostProbe, isBelieved: Bool, _ gateway: GatewaySettings) -> Finding {
    let request = "A request for \(gateway.publicURL)\(probe.path) with `Host: \(probe.host)`"
    guard isBelieved else { return .ok("host", "\(request) is not judged as one for \(probe.host).") }
    return .failed(
      "host",
      "\(request) is judged as one for \(probe.host). The proxy chooses the service by the first host, so a client can use the routes of one host for the services of another.",
      fix:
        "Let the proxy refuse such a request, or set Host, X-Forwarded-Host and X-Original-URL from the host by which "
        + "it chooses the service. For nginx, take `map` and `$moongate_host` from Documentation/guides/nginx.md.")
  }

  static func judgedHostNotTried(_ why: String) -> Finding {
    .ok("host", "Which host of a request with two is judged was not tried: \(why).")
  }

  private static let setHeader =
    "Let the proxy set X-Forwarded-For to the address of its client, in nginx with `proxy_set_header X-Forwarded-For $remote_addr;`."

  private static func list(_ blocks: [AddressBlock]) -> String { blocks.map(\.description).joined(separator: ", ") }
}

extension GatewaySettings {
  /// Whether only a proxy in front of the gateway can answer at public_url, because it uses https and the gateway
  /// has no certificate.
  fileprivate var needsProxy: Bool { publicURL.isSecure && tls == nil }
}
