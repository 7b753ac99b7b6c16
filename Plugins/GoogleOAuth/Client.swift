import Foundation
import MoongateSDK

/// The client registration and the issuer from gateway.lua.
struct Client: Sendable {
  static let google = "https://accounts.google.com"
  /// The signature algorithms that can be verified, and the default. HS256 and `none` are well-known forgeries.
  static let knownAlgorithms = ["RS256", "PS256", "ES256", "ES384", "EdDSA"]

  /// When claims are requested from the userinfo endpoint.
  enum UserInfoUse: String, CaseIterable {
    /// If the ID token lacks the address or the name.
    case missing
    case always, never
  }

  /// When an address counts as verified by the issuer.
  enum EmailRule: String, CaseIterable {
    /// If the claim `email_verified` is true.
    case claim
    case always
  }

  let issuer: String
  let id: String
  let secret: String
  /// The client ids of the operator's own apps.
  let apps: [String]
  /// Other audiences that are trusted beside the client.
  let audiences: [String]
  let algorithms: [String]
  let userInfo: UserInfoUse
  let emailRule: EmailRule
  /// The domains for whose addresses the issuer is authoritative; nil for the default of the issuer.
  let trustedDomains: Set<String>?

  /// - Throws: an error with the missing setting.
  init(_ settings: StepSettings) throws {
    guard let id = settings.text("client_id"), !id.isEmpty else { throw OAuthFault.setting("client_id") }
    guard let secret = settings.secret("client_secret"), !secret.isEmpty else {
      throw OAuthFault.setting("client_secret")
    }
    issuer = settings.text("issuer") ?? Self.google
    self.id = id
    self.secret = secret
    apps = (settings.text("apps") ?? "").split(separator: " ").map(String.init)
    audiences = settings.list("audiences")
    let chosen = settings.list("algorithms").filter(Self.knownAlgorithms.contains)
    algorithms = chosen.isEmpty ? Self.knownAlgorithms : chosen
    userInfo = settings.text("userinfo").flatMap(UserInfoUse.init) ?? .missing
    emailRule = settings.text("email_verified").flatMap(EmailRule.init) ?? .claim
    trustedDomains =
      settings.isSet("trusted_domains") ? Set(settings.list("trusted_domains").map { $0.lowercased() }) : nil
  }

  /// Whether the name is the issuer's. Google also uses `accounts.google.com`; other issuers have only one name.
  func speaksFor(_ name: String) -> Bool { name == issuer || (issuer == Self.google && name == "accounts.google.com") }

  /// Whether the issuer is authoritative for addresses of a domain: only then does an address that it has verified join
  /// the account that holds the address.
  ///
  /// Attack: somebody runs an issuer of their own, or finds one that does not verify addresses, and lets it say that
  /// owner@gmail.com is theirs. `hd` is no registered claim (OpenID Connect Core 1.0 section 5.1), so any issuer can
  /// send it with any value; only Google's is a statement about a domain
  /// (developers.google.com/identity/gsi/web/guides/verify-google-id-token).
  /// - Parameters:
  ///   - domain: in lower case.
  ///   - hostedDomain: the claim `hd` of the ID token.
  func isAuthoritative(for domain: String, hostedDomain: String?) -> Bool {
    if let trustedDomains { return trustedDomains.contains(domain) }
    return issuer == Self.google && (domain == "gmail.com" || domain == hostedDomain?.lowercased())
  }
}
