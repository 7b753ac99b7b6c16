import MoongateSDK

/// What the ID token or the userinfo endpoint says about the user (OpenID Connect Core 1.0 section 5.1).
struct ProfileClaims: Sendable {
  private(set) var email: String?
  /// Whether the claim `email_verified` is exactly `true`.
  private(set) var isEmailVerified: Bool
  /// The domain of the account's organization at Google, from the ID token; nil for a personal account.
  let hostedDomain: String?
  private(set) var firstName: String?
  private(set) var lastName: String?
  private(set) var name: String?
  /// The claim `groups`, which several providers send without a standard.
  private(set) var groups: [String]

  /// Malformed profile claims do not make the token a forgery: they count as missing.
  init(_ members: [String: JSONValue]) {
    email = members["email"]?.text
    isEmailVerified = members["email_verified"]?.isTrue ?? false
    hostedDomain = members["hd"]?.text
    firstName = members["given_name"]?.text
    lastName = members["family_name"]?.text
    name = members["name"]?.text
    groups = members["groups"]?.texts ?? []
  }

  /// Whether the address or the name is missing.
  var lacksAny: Bool { email == nil || (firstName == nil && name == nil) }

  /// Adds what is missing. `email_verified` is a statement about the address beside it, so it never counts for another
  /// one, nor for an address that comes from elsewhere. The groups come from one place only.
  ///
  /// Attack: a group by which a service refuses is sent by the userinfo endpoint only, and a sign-in for which that is
  /// not asked removes it.
  /// - Parameter takesGroups: whether the userinfo endpoint is asked at every sign-in.
  mutating func complete(with other: ProfileClaims, takesGroups: Bool) {
    if email == nil {
      (email, isEmailVerified) = (other.email, other.isEmailVerified)
    } else if email == other.email {
      isEmailVerified = isEmailVerified || other.isEmailVerified
    }
    if firstName == nil, lastName == nil { (firstName, lastName) = (other.firstName, other.lastName) }
    name = name ?? other.name
    if takesGroups, groups.isEmpty { groups = other.groups }
  }

  /// The proof: the identity at the provider, and the address if the provider is authoritative for it. Any other
  /// address that the provider has verified is attested: it is stored as claimed, and joins an account only with that
  /// account's own proof. An unverified address is only claimed.
  func proof(of subject: String, at client: Client) -> Proof {
    let value = "\(client.issuer) \(subject)"
    let identity = Identifier(kind: .federated, value: value, display: email ?? value, groups: groups)
    let address = email.flatMap(EmailAddress.init)
    let addresses = [address].compactMap { $0.map(Identifier.init) }
    let isVerified = isEmailVerified || client.emailRule == .always
    let isAuthoritative =
      isVerified && address.map { client.isAuthoritative(for: $0.domain, hostedDomain: hostedDomain) } ?? false
    return Proof(
      proved: [identity] + (isAuthoritative ? addresses : []),
      attested: isVerified && !isAuthoritative ? addresses : [],
      claimed: isVerified ? [] : addresses,
      firstName: Self.readable(firstName) ?? Self.readable(name), lastName: Self.readable(lastName))
  }

  /// A name that is safe in pages and headers: at most 100 characters, without control characters, line separators and
  /// bidirectional controls.
  private static func readable(_ name: String?) -> String? {
    let scalars = (name ?? "").unicodeScalars.filter { scalar in
      ![.control, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse].contains(
        scalar.properties.generalCategory)
        && !scalar.properties.isBidiControl
    }
    let text = String(String.UnicodeScalarView(scalars)).prefix(100)
    return text.allSatisfy(\.isWhitespace) ? nil : String(text)
  }
}
