/// The names of the gateway's cookies for one configuration, and the `Set-Cookie` values that set and expire them (RFC
/// 6265bis section 4.1.3.2 for the prefixes).
package struct GatewayCookies: Sendable, Hashable {
  private static let plainSession: StaticString = "moongate"
  private static let hostSession: StaticString = "__Host-moongate"
  /// With a `Domain`, which the prefix `__Host-` does not allow.
  private static let sharedSession: StaticString = "__Secure-moongate"
  private static let plainFlow: StaticString = "moongate-flow"
  private static let hostFlow: StaticString = "__Host-moongate-flow"
  private static let plainDevice: StaticString = "moongate-device"
  private static let hostDevice: StaticString = "__Host-moongate-device"
  private static let plainApps: StaticString = "moongate-apps"
  private static let hostApps: StaticString = "__Host-moongate-apps"
  private static let plainInvitation: StaticString = "moongate-invitation"
  private static let hostInvitation: StaticString = "__Host-moongate-invitation"
  // The cookies of frames exist only over https.
  private static let hostFramedSession: StaticString = "__Host-moongate-framed"
  private static let sharedFramedSession: StaticString = "__Secure-moongate-framed"
  private static let framedFlow: StaticString = "__Host-moongate-flow-framed"
  private static let framedDevice: StaticString = "__Host-moongate-device-framed"

  /// The names of the session, flow, device, app and invitation cookies under any configuration. These cookies are
  /// neither sent upstream nor accepted from there. No other list has them.
  package static let allNames: [StaticString] = [
    plainSession, hostSession, sharedSession, plainFlow, hostFlow, plainDevice, hostDevice, plainApps, hostApps,
    plainInvitation, hostInvitation, hostFramedSession, sharedFramedSession, framedFlow, framedDevice,
  ]

  /// The cookie with the language that the user selected on a page. It contains no credential and may reach services,
  /// so it is not in `allNames`.
  package static let selectedLanguage = "moongate-language"
  /// The cookie with the last sign-in method, not in `allNames` for the same reason.
  package static let signInMethod = "moongate-way"

  /// The name of the session cookie with these settings.
  package static func sessionName(_ settings: GatewaySettings) -> StaticString {
    sessionName(isSecure: settings.publicURL.isSecure, isShared: settings.cookieDomain != nil)
  }

  /// - Parameter isShared: whether the cookie is for a domain and its subdomains.
  private static func sessionName(isSecure: Bool, isShared: Bool) -> StaticString {
    guard isSecure else { return plainSession }
    return isShared ? sharedSession : hostSession
  }

  /// The name of the session cookie of frames with these settings; nil without https, where there is none.
  package static func framedSessionName(_ settings: GatewaySettings) -> StaticString? {
    guard settings.publicURL.isSecure else { return nil }
    return settings.cookieDomain == nil ? hostFramedSession : sharedFramedSession
  }

  /// Whether the cookies are for a frame of another site: partitioned by the site of the tab (CHIPS, `Partitioned`),
  /// and with names of their own, because they have no `SameSite` protection (`FrameRequest`).
  package let isFramed: Bool
  /// The cookie with a session's token.
  package let session: String
  /// The cookie that identifies a browser for its flows.
  package let flow: String
  /// The cookie with the device token of a device that has signed in before.
  package let device: String
  /// The cookie with the apps that the user of the browser has allowed.
  package let apps: String
  /// The cookie with the code of the invitation whose link the browser has opened.
  package let invitation: String
  private let isSecure: Bool
  private let domain: String?
  /// The domains for which a sibling host could have set a cookie with the session cookie's name.
  private let parentDomains: [String]

  /// - Parameters:
  ///   - host: the host of the request; nil for `publicURL`'s.
  ///   - isFramed: whether the cookies are for a frame. Without https, there are no others than the usual ones.
  package init(publicURL: PublicURL, cookieDomain: String?, host: String? = nil, isFramed: Bool = false) {
    let host = host ?? publicURL.host
    isSecure = publicURL.isSecure
    self.isFramed = isFramed && isSecure
    domain = cookieDomain
    if self.isFramed {
      session = (cookieDomain == nil ? Self.hostFramedSession : Self.sharedFramedSession).description
      flow = Self.framedFlow.description
      device = Self.framedDevice.description
    } else {
      session = Self.sessionName(isSecure: isSecure, isShared: cookieDomain != nil).description
      flow = (isSecure ? Self.hostFlow : Self.plainFlow).description
      device = (isSecure ? Self.hostDevice : Self.plainDevice).description
    }
    apps = (isSecure ? Self.hostApps : Self.plainApps).description
    invitation = (isSecure ? Self.hostInvitation : Self.plainInvitation).description
    let labels = host.split(separator: ".")
    let isAddress = host.hasPrefix("[") || IPAddressText.parse(Array(host.utf8)) != nil
    parentDomains =
      isAddress || labels.count < 2 ? [] : (0...(labels.count - 2)).map { labels[$0...].joined(separator: ".") }
  }

  package init(_ settings: GatewaySettings, isFramed: Bool = false) {
    self.init(publicURL: settings.publicURL, cookieDomain: settings.cookieDomain, isFramed: isFramed)
  }

  /// The cookies for the root domain of a request's host. Their names are the same on all domains.
  package init(_ settings: GatewaySettings, at host: String?, isFramed: Bool = false) {
    guard let domain = settings.furtherDomain(of: host) else {
      self.init(settings, isFramed: isFramed)
      return
    }
    self.init(publicURL: settings.publicURL, cookieDomain: domain, host: host, isFramed: isFramed)
  }

  /// The `Set-Cookie` values that sign a browser in. Cookies that a sibling host has set with our name are expired
  /// first: two cookies with that name would be refused, which would lock the user out.
  /// - Parameter lifetime: how long the browser keeps the cookie; nil: until it is closed.
  package func signIn(_ token: SecretText, for lifetime: Duration? = nil) -> [String] {
    let age = lifetime.map { "; Max-Age=\($0.components.seconds)" } ?? ""
    return expiries(keeping: true) + [line(session, token.reveal(), domain: domain) + age]
  }

  /// The `Set-Cookie` values that sign a browser out. They expire every variant of our cookie.
  package func signOut() -> [String] { expiries(keeping: false) }

  /// The `Set-Cookie` value that identifies a browser for its flows.
  package func begin(_ token: SecretText) -> String { line(flow, token.reveal(), domain: nil) }

  /// The `Set-Cookie` values that identify a browser for the handoff that it requests. Cookies that a sibling host has
  /// set with the same name are expired first, because two cookies with that name are refused. Only without https can a
  /// sibling host set one.
  package func beginHandoff(_ token: SecretText) -> [String] {
    (isSecure ? [] : parentDomains).map { line(flow, "", domain: $0) + "; Max-Age=0" } + [begin(token)]
  }

  /// The `Set-Cookie` value that stores the device token. It outlives sessions and sign-out.
  package func remember(_ token: SecretText) -> String {
    line(device, token.reveal(), domain: nil) + "; Max-Age=\(DeviceToken.lifetime.components.seconds)"
  }

  /// The `Set-Cookie` value that stores the allowed apps, for a year.
  package func allow(_ apps: SecretText) -> String {
    line(self.apps, apps.reveal(), domain: nil) + "; Max-Age=31536000"
  }

  /// The `Set-Cookie` value that stores the code of an invitation, for the hour in which its user registers.
  package func invite(_ code: SecretText) -> String {
    line(invitation, code.reveal(), domain: nil) + "; Max-Age=3600"
  }

  private func expiries(keeping: Bool) -> [String] {
    var variants: [(name: String, domain: String?)] = []
    if isSecure {
      let (host, shared) =
        isFramed ? (Self.hostFramedSession, Self.sharedFramedSession) : (Self.hostSession, Self.sharedSession)
      variants.append((host.description, nil))
      variants.append((shared.description, nil))
      variants += (domain.map { [$0] } ?? []).map { (shared.description, $0) }
    } else {
      variants.append((Self.plainSession.description, nil))
      variants += Set(parentDomains + (domain.map { [$0] } ?? [])).sorted().map { (Self.plainSession.description, $0) }
    }
    if keeping {
      // Only the variants that would make the next sign-in fail: those with the session cookie's name, except the one
      // being set.
      variants.removeAll { $0.name != session || $0.domain == domain }
    }
    return variants.map { line($0.name, "", domain: $0.domain) + "; Max-Age=0" }
  }

  private func line(_ name: String, _ value: String, domain: String?) -> String {
    let scope = isFramed ? "None; Secure; Partitioned" : isSecure ? "Lax; Secure" : "Lax"
    return "\(name)=\(value); Path=/; HttpOnly; SameSite=\(scope)\(domain.map { "; Domain=\($0)" } ?? "")"
  }
}
