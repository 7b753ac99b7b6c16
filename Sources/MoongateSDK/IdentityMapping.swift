/// What the gateway makes of a user of another site, from what the site says.
///
/// The function `identity` of the operator's policy returns it. A provider with its own rules uses the same type.
public struct MappedIdentity: Sendable, Equatable {
  public var email: String?
  /// Whether the site has verified the address. It joins an account only if the site is authoritative for it.
  public var isEmailVerified: Bool
  public var firstName: String?
  public var lastName: String?
  /// See `Identifier.groups`.
  public var groups: [String]
  /// See `Identifier.attributes`: policies read it as `f.account.identities.NAME.data`.
  public var data: [String: String]

  /// More than five parameters: one for each field.
  public init(
    email: String? = nil, isEmailVerified: Bool = false, firstName: String? = nil, lastName: String? = nil,
    groups: [String] = [], data: [String: String] = [:]
  ) {
    self.email = email
    self.isEmailVerified = isEmailVerified
    self.firstName = firstName
    self.lastName = lastName
    self.groups = groups
    self.data = data
  }
}

extension MappedIdentity {
  /// The identity at the site.
  ///
  /// Attack: a claim that is no address, of any length and characters, is shown as the name of the identity.
  /// - Parameters:
  ///   - value: the issuer and the subject, with a space between them.
  ///   - name: shown for an identity without an address.
  public func identifier(_ value: String, named name: String) -> Identifier {
    Identifier(
      kind: .federated, value: value, display: email.flatMap(EmailAddress.init)?.text ?? name, attributes: data,
      groups: groups)
  }

  /// The proof of the identity, with the address if the site is authoritative for it. Any other address that the site
  /// has verified is attested: it is stored as claimed, and joins an account only with that account's own proof. An
  /// unverified address is only claimed.
  ///
  /// Attack: a site at which people choose their address says that someone else's is theirs.
  /// - Parameters:
  ///   - identity: see `identifier(_:named:)`.
  ///   - alwaysVerified: whether the operator says that every address of the site is verified.
  ///   - siteSession: see `Proof.siteSession`.
  ///   - recheck: see `Proof.recheck`.
  ///   - isAuthoritative: whether the site decides who has the addresses of a domain.
  public func proof(
    of identity: Identifier, alwaysVerified: Bool, siteSession: String? = nil, recheck: [UInt8]? = nil,
    isAuthoritative: (_ domain: String) -> Bool
  ) -> Proof {
    let address = email.flatMap(EmailAddress.init)
    let addresses = [address].compactMap { $0.map(Identifier.init) }
    let isVerified = isEmailVerified || alwaysVerified
    let isTrusted = isVerified && address.map { isAuthoritative($0.domain) } ?? false
    return Proof(
      proved: [identity] + (isTrusted ? addresses : []), attested: isVerified && !isTrusted ? addresses : [],
      claimed: isVerified ? [] : addresses, firstName: Self.readable(firstName), lastName: Self.readable(lastName),
      siteSession: siteSession, recheck: recheck)
  }

  /// A name that is safe in pages and headers: at most 100 characters, without control characters, line separators and
  /// bidirectional controls.
  private static func readable(_ name: String?) -> String? {
    let scalars = (name ?? "").unicodeScalars.filter { scalar in
      ![.control, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse].contains(
        scalar.properties.generalCategory) && !scalar.properties.isBidiControl
    }
    let text = String(String.UnicodeScalarView(scalars)).prefix(100)
    return text.allSatisfy(\.isWhitespace) ? nil : String(text)
  }
}

/// Runs the function `identity` of the operator's policy, for a provider whose descriptor says `mapsClaims`.
public struct IdentityMapper: Sendable {
  private let map: @Sendable (_ claims: [String: JSONClaim]) async throws -> MappedIdentity?

  /// - Parameter map: by default, as if the policy had no such function.
  public init(
    _ map: @escaping @Sendable (_ claims: [String: JSONClaim]) async throws -> MappedIdentity? = { _ in nil }
  ) {
    self.map = map
  }

  /// - Parameter claims: what the site says, verified. The function reads it as `f.claims`.
  /// - Returns: nil if the policy has no such function. The provider then uses its own rules.
  /// - Throws: if the function denies or fails. Do not catch it: the gateway refuses the step in the policy's words.
  public func callAsFunction(_ claims: [String: JSONClaim]) async throws -> MappedIdentity? { try await map(claims) }
}

/// A provider that has rules of its own for what another site says, which apply without the function `identity`.
public protocol ClaimsMapping: Provider {
  /// Must not contact other sites. `moongate policy claims` shows the result.
  /// - Parameters:
  ///   - claims: what the site says.
  ///   - settings: values of the declared types.
  /// - Throws: if the claims are refused.
  func identity(from claims: [String: JSONClaim], settings: StepSettings) throws -> MappedIdentity

  /// The claims as the function `identity` gets them: by default as they are.
  /// - Throws: if the claims are refused before the function is called.
  func readable(_ claims: [String: JSONClaim], settings: StepSettings) throws -> [String: JSONClaim]
}

extension ClaimsMapping {
  public func readable(_ claims: [String: JSONClaim], settings: StepSettings) throws -> [String: JSONClaim] { claims }
}

extension StepSettings {
  /// The mail providers at which anyone can get an address. A sample: a site that is trusted for one of them is nearly
  /// always a mistake.
  private static let publicMailDomains: Set<String> = [
    "gmail.com", "googlemail.com", "outlook.com", "hotmail.com", "live.com", "msn.com", "yahoo.com", "ymail.com",
    "rocketmail.com", "yahoo.co.in", "yahoo.in", "yahoo.co.uk", "yahoo.co.jp", "yahoo.de", "yahoo.fr", "icloud.com",
    "me.com", "mac.com", "aol.com", "proton.me", "protonmail.com", "pm.me", "gmx.com", "gmx.net", "gmx.de", "gmx.at",
    "gmx.ch", "web.de", "t-online.de", "freenet.de", "mail.com", "mail.ru", "inbox.ru", "list.ru", "bk.ru",
    "yandex.ru", "yandex.com", "ya.ru", "rambler.ru", "qq.com", "foxmail.com", "163.com", "126.com", "yeah.net",
    "sina.com", "sohu.com", "naver.com", "daum.net", "hanmail.net", "rediffmail.com", "zoho.com", "zohomail.in",
    "fastmail.com", "fastmail.fm", "hey.com", "tutanota.com", "tuta.com", "tuta.io", "hushmail.com", "mailbox.org",
    "posteo.de", "orange.fr", "wanadoo.fr", "free.fr", "laposte.net", "sfr.fr", "libero.it", "virgilio.it",
    "tiscali.it",
    "hotmail.co.uk", "hotmail.fr", "hotmail.de", "outlook.de", "outlook.fr", "live.co.uk", "btinternet.com", "sky.com",
    "comcast.net", "verizon.net", "att.net", "sbcglobal.net", "bellsouth.net", "cox.net", "charter.net", "uol.com.br",
    "bol.com.br", "terra.com.br", "wp.pl", "o2.pl", "onet.pl", "interia.pl", "seznam.cz", "abv.bg", "ukr.net",
    "mailinator.com", "guerrillamail.com", "duck.com",
  ]

  /// What is wrong with the settings `trusted_domains`, a list, and `email_verified`, which is `"claim"` or `"always"`.
  /// - Parameters:
  ///   - site: its name in messages.
  ///   - isLocal: whether it is on this machine, as in a demo.
  ///   - besides: public mail domains that are the site's own.
  public func addressFindings(at site: String, isLocal: Bool, besides own: Set<String> = []) -> [SettingFinding] {
    var found = list("trusted_domains").compactMap { domain -> SettingFinding? in
      let name = domain.lowercased()
      if EmailAddress("x@\(domain)")?.domain != name {
        return SettingFinding(
          "trusted_domains",
          "\"\(domain)\" is not the domain of an email address: write one such as \"example.com\", without @ and *")
      }
      guard Self.publicMailDomains.contains(name), !isLocal, !own.contains(name) else { return nil }
      // Attack: a site that does not verify addresses, or a user of it who can choose one, gets into the account of
      // anyone with an address at a public mail provider.
      return SettingFinding(
        "trusted_domains",
        "\(name) is a public mail provider, for whose addresses \(site) is not authoritative: remove it. People with such an address confirm it by a code"
      )
    }
    if text("email_verified") == "always" {
      found.append(
        SettingFinding(
          "email_verified",
          "\"always\" is for directories whose addresses only an administrator sets: if people can choose their address at \(site), they can choose someone else's",
          .warning))
    }
    return found
  }
}
