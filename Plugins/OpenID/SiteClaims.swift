import Crypto
import Foundation
import MoongateSDK

/// What a site says about a user: the ID token and the userinfo endpoint together, or the answers of a site without ID
/// tokens.
struct SiteClaims: Sendable {
  private(set) var members: [String: JSONClaim]
  let subject: String
  /// The issuer's name in the identity.
  let issuer: String
  /// Whether the issuer stands for any tenant, so that the groups are those of an organization that anyone can create.
  var isOfAnyTenant = false
  /// The domain of the account's organization at Google, from the ID token; nil for a personal account.
  let hostedDomain: String?

  /// The claims of the scopes `profile` and `email` (OpenID Connect Core 1.0 section 5.4) that are used.
  private static let profile = ["given_name", "family_name", "name", "preferred_username"]
  /// Claims that are statements about the ID token, so that no other place can make them.
  private static let ofToken: Set<String> = [
    "iss", "sub", "aud", "azp", "exp", "iat", "nbf", "nonce", "auth_time", "acr", "amr", "hd", "tid", "sid", "email",
    "email_verified",
  ]

  /// The user's session at the issuer.
  var session: String? {
    members["sid"]?.text.flatMap { $0.isEmpty ? nil : Self.session($0, at: issuer) }
  }

  /// The name of a user's session at an issuer (`Proof.siteSession`), of the same length for an id of any.
  ///
  /// Attack: after a change of `issuer`, the new one ends sessions of the old one, whose ids it knows.
  /// - Parameter id: the claim `sid` (OpenID Connect Back-Channel Logout 1.0 section 2.1).
  static func session(_ id: String, at issuer: String) -> String {
    Base64URL.encode(Array(SHA256.hash(data: Data("\(issuer) \(id)".utf8))))
  }

  /// The value of the identity at the site.
  var identity: String { "\(issuer) \(subject)" }

  /// Whether the address or the name is missing.
  var lacksAny: Bool {
    members["email"]?.text == nil || (members["given_name"]?.text == nil && members["name"]?.text == nil)
  }

  /// Adds what is missing. `email_verified` is a statement about the address beside it, so it never counts for another
  /// one, nor for an address that comes from elsewhere.
  ///
  /// Attack: a group by which a service refuses is sent by the userinfo endpoint only, and a sign-in for which that is
  /// not asked removes it. So everything but the profile comes from there only if it is always asked.
  /// - Parameter takesAll: whether the userinfo endpoint is asked at every sign-in.
  mutating func complete(with other: [String: JSONClaim], takesAll: Bool) {
    if members["email"]?.text == nil {
      (members["email"], members["email_verified"]) = (other["email"], other["email_verified"])
    } else if members["email"] == other["email"], !(members["email_verified"]?.isTrue ?? false) {
      members["email_verified"] = other["email_verified"] ?? members["email_verified"]
    }
    let names = takesAll ? Array(other.keys) : Self.profile
    for name in names where members[name] == nil && !Self.ofToken.contains(name) { members[name] = other[name] }
  }

  /// Adds the name that Apple posts beside the first code of a user.
  ///
  /// Attack: the form is the browser's, so its address is never used.
  mutating func addNames(ofForm text: String) {
    guard let form = try? JSONClaim(parsing: text.utf8), let names = form[["name"]]?.members else { return }
    for (claim, name) in [("given_name", "firstName"), ("family_name", "lastName")] where members[claim] == nil {
      if let text = names[name]?.text { members[claim] = .text(text) }
    }
  }
}

extension MappedIdentity {
  /// The proof: the identity at the site, and the address as far as the site is authoritative for it.
  /// - Parameter recheck: `Proof.recheck`.
  func proof(of said: SiteClaims, at client: Client, recheck: [UInt8]? = nil) -> Proof {
    proof(
      of: identifier(of: said), alwaysVerified: client.emailRule == .always, siteSession: said.session,
      recheck: recheck
    ) { client.isAuthoritative(for: $0, hostedDomain: said.hostedDomain) }
  }

  /// The identity at the site.
  func identifier(of said: SiteClaims) -> Identifier { identifier(said.identity, named: said.identity) }
}
