import MoongateCore
import MoongateSDK

// What the fields of one route mean together.
extension RouteReader {
  /// Reports fields that exclude each other, and warns of those that are not safe together.
  func judge(_ reader: TableReader, _ route: Route) {
    judgeAccess(reader, route)
    refuseRepeatedHeaders(reader, route)
    warnOfPlainCredentials(reader, route)
    if route.upstreams.count == 1, let node = reader.explicitValue("balance") {
      problems.warn(node.location, reader.path("balance"), "has no effect: the route has only one upstream")
    } else if route.balance == .sticky, route.health == nil, let node = reader.explicitValue("balance") {
      problems.warn(
        node.location, reader.path("balance"),
        "requests of an account stay with an upstream that answers only errors: add `health`, which finds that out")
    }
  }

  private func judgeAccess(_ reader: TableReader, _ route: Route) {
    if route.isOpen {
      for name in ["flow", "require", "decide", "tokens"] {
        if let node = reader.explicitValue(name) {
          problems.add(
            node.location, reader.path(name),
            "a route with allow = true is open to all requests: remove one of the two")
        }
      }
    }
    if let tokens = route.tokens { warnOfUnmetRequirement(tokens, route.requirement, reader) }
    if let host = route.host, !route.isOpen, route.tokens == nil, let gateway, !Self.canHaveSession(host, gateway),
      let node = reader.explicitValue("host")
    {
      problems.add(
        node.location, reader.path("host"),
        "no session can reach \(host): it is neither public_url's host (\(gateway.publicURL.host)) nor under \(Self.sessionDomains(gateway))"
      )
    }
  }

  /// Tokens never pass a step, and a service token has no email address.
  private func warnOfUnmetRequirement(_ tokens: RouteTokens, _ requirement: Requirement?, _ reader: TableReader) {
    guard let node = reader.explicitValue("tokens") else { return }
    switch requirement {
    case .passed(let provider, _):
      problems.warn(
        node.location, reader.path("tokens"),
        "no token can be accepted: tokens have not passed `\(provider)`, which `require` demands. Remove one of the two"
      )
    case .emailVerified where !tokens.takesPersonal:
      problems.warn(
        node.location, reader.path("tokens"),
        "no token can be accepted: a service token has no email address, which `require` demands. Remove one of the two"
      )
    default: break
    }
  }

  private static func canHaveSession(_ host: String, _ gateway: GatewaySettings) -> Bool {
    if host == gateway.publicURL.host { return true }
    return (gateway.domains + (gateway.cookieDomain.map { [$0] } ?? [])).contains { DomainReader.contains($0, host) }
  }

  /// The settings that define where sessions are valid, for problems.
  private static func sessionDomains(_ gateway: GatewaySettings) -> String {
    if !gateway.domains.isEmpty { return "one of domains (\(gateway.domains.joined(separator: ", ")))" }
    return "cookie_domain\(gateway.cookieDomain.map { " (\($0))" } ?? "")"
  }

  // MARK: headers

  /// Reports a header that two fields set.
  ///
  /// Attack: a service that reads `X_User` and `X-User` as one header takes the fixed value, or the first of both, for
  /// the user.
  private func refuseRepeatedHeaders(_ reader: TableReader, _ route: Route) {
    var owners: [String: String] = [:]
    func take(_ name: String, _ field: [String]) {
      let spelled = field.joined(separator: ".")
      guard let other = owners.updateValue(spelled, forKey: ReservedHeaders.folded(name)) else { return }
      problems.add(
        reader.location(of: field), reader.path(spelled),
        "sets `\(name)`, which `\(other)` sets as well: name another header, or remove one of the two")
    }
    let statements = ServiceIdentity.Statement.allCases
    // Without a name of its own, a statement has its usual header.
    for statement in statements where route.identity.headers[statement] == nil {
      owners[ReservedHeaders.folded(statement.usualHeader)] = "identity.\(statement.rawValue)"
    }
    for header in route.headers { take(header.name, ["headers"]) }
    for statement in statements {
      if let header = route.identity.headers[statement] { take(header.name, ["identity", statement.rawValue]) }
    }
    if route.identity.basic != nil { take("Authorization", ["identity", "basic"]) }
    if route.bearer != nil { take("Authorization", ["bearer"]) }
    owners = [:]
    if !route.frames.isEmpty {
      for name in ["content-security-policy", "x-frame-options"] { owners[name] = "frames" }
    }
    for header in route.responseHeaders {
      // Removing what `frames` replaces is no contradiction.
      if header.value == nil, owners[ReservedHeaders.folded(header.name)] == "frames" { continue }
      take(header.name, ["response_headers"])
    }
  }

  /// Attack: whoever reads the way to the service has the password, or a token of each user.
  private func warnOfPlainCredentials(_ reader: TableReader, _ route: Route) {
    guard let upstream = route.upstreams.first(where: { !$0.isSecure && !Self.isPrivate($0.host) }) else { return }
    for (field, what) in [(["identity", "basic"], "the password"), (["bearer"], "the tokens of users")]
    where field[0] == "bearer" ? route.bearer != nil : route.identity.basic != nil {
      problems.warn(
        reader.location(of: field), reader.path(field.joined(separator: ".")),
        "\(what) would be sent unencrypted to \(upstream): use https:// outside of a private network")
    }
  }

  private static let privateBlocks = [
    "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16", "fc00::/7", "fe80::/10",
  ].compactMap { AddressBlock($0) }
  private static let privateSuffixes = [".internal", ".local", ".lan", ".home.arpa", ".svc", ".cluster.local"]

  /// Whether the host is this machine, or has an address or a name that only private networks have.
  private static func isPrivate(_ host: String) -> Bool {
    let bare = IPAddressBytes.withoutBrackets(host)
    if let address = (IPAddressBytes.parseV4(bare.utf8) ?? IPAddressBytes.parseV6(bare.utf8)).flatMap({
      ClientAddress(bytes: $0)
    }) {
      return Loopback.isAddress(address.bytes) || privateBlocks.contains { address.isIn($0) }
    }
    return Loopback.contains(host) || !host.contains(".") || privateSuffixes.contains { host.hasSuffix($0) }
  }
}
