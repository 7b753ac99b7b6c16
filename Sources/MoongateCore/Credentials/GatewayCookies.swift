/// The names of the gateway's cookies under one configuration, and the lines that set and expire them (http.md,
/// "Sessions and cookies"; RFC 6265bis section 4.1.3.2 for the prefixes).
package struct GatewayCookies: Sendable, Hashable {
  /// Every name that can be ours, under any configuration: none goes upstream, none is taken from there.
  package static let allNames: Set<String> = [
    "moongate", "__Host-moongate", "__Secure-moongate", "moongate-flow", "__Host-moongate-flow", "moongate-device",
    "__Host-moongate-device",
  ]

  /// Holds a session's token.
  package let session: String
  /// Tells a browser that began flows.
  package let flow: String
  /// Holds the signed token of a device that has signed in before.
  package let device: String
  private let isSecure: Bool
  private let domain: String?
  /// The domains for which a neighbour could have set a cookie of our session's name.
  private let parentDomains: [String]

  /// - Parameter host: that the request is for; nil: `publicURL`'s.
  package init(publicURL: PublicURL, cookieDomain: String?, host: String? = nil) {
    let host = host ?? publicURL.host
    isSecure = publicURL.isSecure
    domain = cookieDomain
    let prefix = isSecure ? "__Host-" : ""
    session = isSecure ? (cookieDomain == nil ? "__Host-moongate" : "__Secure-moongate") : "moongate"
    flow = prefix + "moongate-flow"
    device = prefix + "moongate-device"
    let labels = host.split(separator: ".")
    let isAddress = host.hasPrefix("[") || IPAddressText.parse(Array(host.utf8)) != nil
    parentDomains =
      isAddress || labels.count < 2 ? [] : (0...(labels.count - 2)).map { labels[$0...].joined(separator: ".") }
  }

  package init(_ settings: GatewaySettings) {
    self.init(publicURL: settings.publicURL, cookieDomain: settings.cookieDomain)
  }

  /// Those of the root domain that a request's host belongs to: their names are the same on all domains.
  package init(_ settings: GatewaySettings, at host: String?) {
    guard let domain = settings.furtherDomain(of: host) else {
      self.init(settings)
      return
    }
    self.init(publicURL: settings.publicURL, cookieDomain: domain, host: host)
  }

  /// The values of `Set-Cookie` that sign a browser in. What a neighbour has planted under our name is expired first:
  /// two cookies of one name are no session, so it would lock the person out.
  package func signIn(_ token: SecretText) -> [String] {
    expiries(keeping: true) + [line(session, token.reveal(), domain: domain)]
  }

  /// The values of `Set-Cookie` that sign a browser out: every variant of our name goes.
  package func signOut() -> [String] { expiries(keeping: false) }

  /// The value of `Set-Cookie` that makes a browser known to its flows.
  package func begin(_ token: SecretText) -> String { line(flow, token.reveal(), domain: nil) }

  /// The values of `Set-Cookie` that make a browser known to the handoff that it asks for. What a neighbour has planted
  /// under the name is expired first: only where there is no https can it have been, and two cookies of one name are
  /// none.
  package func beginHandoff(_ token: SecretText) -> [String] {
    (isSecure ? [] : parentDomains).map { line(flow, "", domain: $0) + "; Max-Age=0" } + [begin(token)]
  }

  /// The value of `Set-Cookie` that makes a device known to the accounts that signed in on it. It outlives sessions,
  /// and signing out.
  package func remember(_ token: SecretText) -> String {
    line(device, token.reveal(), domain: nil) + "; Max-Age=\(DeviceToken.lifetime.components.seconds)"
  }

  private func expiries(keeping: Bool) -> [String] {
    var variants: [(String, String?)] = []
    if isSecure {
      variants.append(("__Host-moongate", nil))
      variants.append(("__Secure-moongate", nil))
      variants += (domain.map { [$0] } ?? []).map { ("__Secure-moongate", $0) }
    } else {
      variants.append(("moongate", nil))
      variants += Set(parentDomains + (domain.map { [$0] } ?? [])).sorted().map { ("moongate", $0) }
    }
    if keeping {
      // Only those that the next sign-in would be refused for: of the session's own name, and not the one that is set.
      variants.removeAll { $0.0 != session || $0.1 == domain }
    }
    return variants.map { line($0.0, "", domain: $0.1) + "; Max-Age=0" }
  }

  private func line(_ name: String, _ value: String, domain: String?) -> String {
    "\(name)=\(value); Path=/; HttpOnly; SameSite=Lax\(isSecure ? "; Secure" : "")\(domain.map { "; Domain=\($0)" } ?? "")"
  }
}
