/// Why a session's token is good on one further root domain (`domains` in gateway.lua), and on no other.
///
/// Attack: a cookie that was stolen on one domain, sent to a host of another one. Each root domain has a token of its
/// own, and a token is accepted only on the hosts of its domain, whether it comes as a cookie or as Bearer.
package struct SessionDomain: Sendable, Equatable, Codable {
  /// The root domain, in lower case.
  package let name: String
  /// The sign-in's own token at present: activity is recorded under it.
  package let home: TokenHash
  /// Whether the sign-in has got a new token since (a step-up). This one does not know of that: its `passed` is as it
  /// was.
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

/// A token for a further root domain, as it is stored: by the sign-in that it belongs to, whose end is its end.
package struct NewDomainToken: Sendable, Equatable {
  /// The root domain, in lower case.
  package let domain: String
  package let token: TokenHash
  /// The sign-in, with its own token: what it has passed is copied.
  package let session: Session

  package init(domain: String, token: TokenHash, session: Session) {
    self.domain = domain
    self.token = token
    self.session = session
  }
}

extension GatewaySettings {
  /// The root domain that a host belongs to, where that is one of `domains` and not `public_url`'s; nil for every other
  /// host.
  /// - Parameter host: in its one spelling (`HostName.name`).
  package func furtherDomain(of host: String?) -> String? {
    guard let host, domains.count > 1 else { return nil }
    return domains.first { $0 != cookieDomain && (host == $0 || host.hasSuffix("." + $0)) }
  }

  /// Whether a session's token is good for requests to the host.
  package func accepts(_ session: Session, at host: String?) -> Bool { session.domain?.name == furtherDomain(of: host) }

  /// The address at which a host of `domains` is served: by the scheme and port of `public_url`.
  package func siblingOrigin(_ host: String) -> PublicURL {
    PublicURL(isSecure: publicURL.isSecure, host: host, port: publicURL.port)
  }
}
