import Foundation
import MoongateSDK

/// An issuer as the settings name it.
struct Issuer: Hashable, Sendable {
  /// The address of which the discovery document is a part, and for most issuers their name.
  let address: String
  /// For an issuer with one name for each tenant: the texts before and after the tenant's id in these names.
  let tenantNames: TenantNames?

  struct TenantNames: Hashable, Sendable {
    let before: String
    let after: String
  }

  /// What discovery says in the place of an id if people of several tenants can sign in.
  static let anyTenant = "{tenantid}"

  init(_ address: String) {
    self.address = address
    tenantNames = nil
  }

  /// The issuer of the settings, or that of the preset.
  init(_ settings: StepSettings, _ preset: Preset) {
    let template = preset.issuer ?? Client.google
    let own = settings.text("issuer")
    address = own ?? template.filled(by: settings)
    let parts = template.split(separator: "{tenant}", maxSplits: 1, omittingEmptySubsequences: false)
    tenantNames =
      own == nil && preset.namesTenant && parts.count == 2
      ? TenantNames(before: String(parts[0]), after: String(parts[1])) : nil
  }

  /// Whether a discovery document at this address may have this name (OpenID Connect Discovery 1.0 section 4.3: the
  /// names must be identical).
  ///
  /// Attack: a document of another issuer at this address. The names of tenants are at the address of the preset, which
  /// nobody else writes.
  func accepts(_ name: String) -> Bool {
    if name == address { return true }
    guard let tenant = tenant(in: name) else { return false }
    return tenant == Self.anyTenant || Self.isTenant(tenant)
  }

  /// The text in the place of the tenant's id; nil if the name has another form.
  func tenant(in name: String) -> String? {
    guard let form = tenantNames, name.hasPrefix(form.before), name.hasSuffix(form.after),
      name.utf8.count > form.before.utf8.count + form.after.utf8.count
    else { return nil }
    return String(name.dropFirst(form.before.count).dropLast(form.after.count))
  }

  /// Whether a text is the id of a tenant.
  static func isTenant(_ text: String) -> Bool { text.utf8.count == 36 && UUID(uuidString: text) != nil }
}

/// The endpoints of a site: the required parts of a discovery document (OpenID Connect Discovery 1.0 section 3), or the
/// settings of a site without one.
struct IssuerMetadata: Sendable, Equatable {
  /// The maximum length of an address in bytes. The gateway accepts redirects of at most 8,192 bytes, parameters
  /// included.
  private static let longestAddress = 4_096

  /// The issuer's name, which ID tokens have; `{tenantid}` in it stands for the tenant of the token.
  let issuer: String
  let authorization: String
  let token: String
  let keys: String
  /// nil if the issuer has no userinfo endpoint.
  let userInfo: String?
  /// Where users sign out at the issuer (OpenID Connect RP-Initiated Logout 1.0 section 2.1); nil if they cannot.
  let endSession: String?
  /// How clients may authenticate at the token endpoint.
  let methods: [String]
  /// Whether authorization responses contain `iss` (RFC 9207).
  let namesIssuerInAnswers: Bool
  /// What `iss` must be at a site without discovery whose issuer is not its origin; nil: `issuer`.
  let issuerInAnswers: String?

  private struct Document: Decodable {
    let issuer: String
    let authorizationEndpoint: String
    let tokenEndpoint: String
    let jwksUri: String
    let userinfoEndpoint: String?
    let endSessionEndpoint: String?
    let tokenEndpointAuthMethodsSupported: [String]?
    let authorizationResponseIssParameterSupported: Bool?
  }

  /// The URL of an issuer's discovery document.
  static func address(of issuer: Issuer) -> String {
    let address = issuer.address
    return (address.hasSuffix("/") ? String(address.dropLast()) : address) + "/.well-known/openid-configuration"
  }

  /// - Throws: an error for the operator.
  init(_ bytes: [UInt8], of issuer: Issuer) throws(OAuthFault) {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    let document: Document
    do { document = try decoder.decode(Document.self, from: Data(bytes)) } catch {
      throw .site("the discovery document of \(issuer.address) cannot be read")
    }
    guard issuer.accepts(document.issuer) else {
      throw .site("the discovery document of \(issuer.address) says that it is \(AnswerRefusal.shown(document.issuer))")
    }
    let addresses = [document.authorizationEndpoint, document.tokenEndpoint, document.jwksUri]
    for address in addresses + [document.userinfoEndpoint, document.endSessionEndpoint].compactMap(\.self) {
      guard Self.isSafe(address) else {
        throw .site("\(issuer.address) names the address \(AnswerRefusal.shown(address)), which is not https")
      }
      // Attack: an issuer elsewhere names an address on this machine, so that the gateway sends the code and the secret
      // to a service that only this machine can reach.
      guard Loopback.containsHost(of: issuer.address) || !Loopback.containsHost(of: address) else {
        throw .site("\(issuer.address) names the address \(AnswerRefusal.shown(address)), which is on this machine")
      }
    }
    self.issuer = document.issuer
    authorization = document.authorizationEndpoint
    token = document.tokenEndpoint
    keys = document.jwksUri
    userInfo = document.userinfoEndpoint
    endSession = document.endSessionEndpoint
    // Basic is the default.
    methods = document.tokenEndpointAuthMethodsSupported ?? [ClientAuth.basic.method]
    namesIssuerInAnswers = document.authorizationResponseIssParameterSupported ?? false
    issuerInAnswers = nil
    guard ClientAuth.chosen.contains(where: { methods.contains($0.method) }) else {
      let known = ClientAuth.chosen.map(\.method).joined(separator: ", ")
      throw .site("\(issuer.address) takes none of \(known)")
    }
  }

  /// The endpoints of a site without ID tokens.
  /// - Throws: an error with the missing setting.
  init(_ settings: StepSettings, _ preset: Preset) throws(OAuthFault) {
    guard let authorize = settings.text("authorize") ?? preset.authorize?.filled(by: settings) else {
      throw .setting("authorize")
    }
    guard let token = settings.text("token") ?? preset.token?.filled(by: settings) else { throw .setting("token") }
    guard let origin = SiteAddress.origin(of: token) else { throw .setting("token") }
    issuer = origin
    authorization = authorize
    self.token = token
    keys = ""
    userInfo = nil
    endSession = nil
    methods = [ClientAuth.basic.method]
    issuerInAnswers = settings.text("issuer")
    namesIssuerInAnswers = issuerInAnswers != nil
  }

  /// Whether an authorization response may name this issuer.
  func mayAnswer(as name: String) -> Bool {
    if let issuerInAnswers { return name == issuerInAnswers }
    if name == issuer || (issuer == Client.google && name == Self.googleAlone) { return true }
    let parts = issuer.split(separator: Issuer.anyTenant, maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, name.hasPrefix(parts[0]), name.hasSuffix(parts[1]) else { return false }
    return Issuer.isTenant(String(name.dropFirst(parts[0].count).dropLast(parts[1].count)))
  }

  private static let googleAlone = "accounts.google.com"

  /// The issuer's name for a token: with the tenant that the token names in the place of `{tenantid}`.
  func name(in claims: [String: JSONClaim]) -> String {
    guard let tenant = claims["tid"]?.text, Issuer.isTenant(tenant) else { return issuer }
    return issuer.replacing(Issuer.anyTenant, with: tenant)
  }

  /// Whether a token is the issuer's. Google also uses `accounts.google.com`; others have only one name.
  func issued(_ claims: [String: JSONClaim]) -> Bool {
    let said = claims["iss"]?.text
    return said == name(in: claims) || (issuer == Client.google && said == Self.googleAlone)
  }

  /// https, or http to this machine, without a fragment, because parameters behind one would not be sent. The scheme is
  /// in lower case, because the gateway's HTTP client takes no other.
  static func isSafe(_ address: String) -> Bool {
    SiteAddress.isSite(address, atMost: longestAddress) && address.hasPrefix("http") && !address.contains("#")
  }
}
