/// Restricts a session's token to one further root domain (`domains` in gateway.lua).
///
/// Attack: a cookie that was stolen on one domain, sent to a host of another one. Each root domain has a token of its
/// own, and a token is accepted only on the hosts of its domain, whether it is sent as a cookie or as a Bearer token.
package struct SessionDomain: Sendable, Equatable, Codable {
  /// The root domain, in lower case.
  package let name: String
  /// The sign-in's own current token, under which activity is recorded.
  package let home: TokenHash
  /// Whether the sign-in has received a new token since (a step-up). This token does not include the step-up: its
  /// `passed` is unchanged.
  ///
  /// Attack: a copied cookie of one domain waits for its owner to step up on another. It keeps the rights that it had,
  /// and no more.
  package let isSuperseded: Bool

  package init(name: String, home: TokenHash, isSuperseded: Bool) {
    self.name = name
    self.home = home
    self.isSuperseded = isSuperseded
  }
}

/// A new token for a further root domain. It ends with the sign-in that it belongs to.
package struct NewDomainToken: Sendable, Equatable {
  /// The root domain, in lower case.
  package let domain: String
  package let token: TokenHash
  /// The sign-in with its own token. Its passed steps are copied.
  package let session: Session

  package init(domain: String, token: TokenHash, session: Session) {
    self.domain = domain
    self.token = token
    self.session = session
  }
}

extension GatewaySettings {
  /// The root domain of a host, if it is one of `domains` and not `public_url`'s; nil for every other host.
  /// - Parameter host: in canonical form (`HostName.name`).
  package func furtherDomain(of host: String?) -> String? {
    guard let host, domains.count > 1 else { return nil }
    return domains.first { $0 != cookieDomain && (host == $0 || host.hasSuffix("." + $0)) }
  }

  /// Whether a session's token is valid for requests to the host.
  /// - Parameter domain: the session's `domain`.
  package func accepts(_ domain: SessionDomain?, at host: String?) -> Bool { domain?.name == furtherDomain(of: host) }

  /// The origin of a host of `domains`, with the scheme and port of `public_url`.
  package func siblingOrigin(_ host: String) -> PublicURL {
    PublicURL(isSecure: publicURL.isSecure, host: host, port: publicURL.port)
  }
}
