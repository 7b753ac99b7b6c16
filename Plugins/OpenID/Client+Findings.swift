import Foundation
import MoongateSDK

// What is wrong with the settings of an entry in gateway.lua.

extension Client {
  /// Parameters of the authorization request that the provider itself sets, or that would replace what it checks.
  private static let ownParameters: Set<String> = [
    "response_type", "client_id", "redirect_uri", "scope", "state", "nonce", "code_challenge", "code_challenge_method",
    "response_mode", "request", "request_uri", "prompt", "max_age", "acr_values",
  ]

  /// The tenants of Microsoft that stand for people of any organization. The last one is that of personal accounts.
  private static let openTenants: Set<String> = [
    "common", "organizations", "consumers", "9188040d-6c67-4c5b-b112-36a304b66dad",
  ]

  /// What is wrong with the settings.
  static func findings(in settings: StepSettings, of entry: OpenID.Entry) -> [SettingFinding] {
    guard let preset = Preset.chosen(by: settings, entry) else { return [] }
    var found = missing(settings, entry, preset) + addresses(settings, entry, preset)
    let site = SiteFacts(settings, entry, preset)
    let ownDomains: Set<String> = site.name == google ? ["gmail.com", "googlemail.com"] : []
    found += settings.addressFindings(at: site.name, isLocal: site.isLocal, besides: ownDomains)
    for algorithm in settings.list("algorithms") where !knownAlgorithms.contains(algorithm) {
      found.append(
        SettingFinding(
          "algorithms",
          "\"\(algorithm)\" cannot be verified here: write some of \(knownAlgorithms.joined(separator: ", "))"))
    }
    if settings.isSet("algorithms"), settings.list("algorithms").isEmpty {
      found.append(SettingFinding("algorithms", "is empty, so no ID token would be accepted: name one, or remove it"))
    }
    for name in settings.table("parameters").keys.sorted() where ownParameters.contains(name) || Int(name) != nil {
      found.append(
        SettingFinding(
          "parameters",
          Int(name) != nil
            ? "every parameter has a name, as in { hd = \"example.com\" }"
            : "\(name) is the gateway's own: remove it, or use the setting of that name"))
    }
    if settings.isSet("recheck"), !preset.offline.exists {
      found.append(
        SettingFinding(
          "recheck", "ends sessions after `recheck_grace`: \(site.name) issues no refresh tokens. Remove it", .warning))
    }
    return found + tenants(settings, preset)
  }

  /// Attack: anyone creates a tenant, and in it a user with any address (known as nOAuth), or a group of any name.
  private static func tenants(_ settings: StepSettings, _ preset: Preset) -> [SettingFinding] {
    let tenant = settings.text("tenant") ?? ""
    let name = tenant.lowercased().split(whereSeparator: { $0 == "/" || $0.isWhitespace }).joined(separator: "/")
    guard preset.namesTenant, !settings.isSet("issuer"), openTenants.contains(name) else { return [] }
    var found = [
      SettingFinding(
        "tenant",
        "people of every tenant can sign in with \"\(tenant)\", and the administrators of theirs name their groups: without `identity` in the policy they have none here, and with it, check f.claims.tid before you use f.claims.groups or f.claims.roles",
        .warning)
    ]
    let trusts = settings.text("email_verified") == EmailRule.always.rawValue ? "email_verified" : "trusted_domains"
    if trusts == "email_verified" || !settings.list(trusts).isEmpty {
      found.append(
        SettingFinding(
          trusts,
          "people of every tenant can sign in with tenant = \"\(tenant)\", and everyone can create a tenant with any addresses: name your own tenant, or remove it"
        ))
    }
    return found
  }

  /// Settings that are missing, or that nothing uses.
  private static func missing(_ settings: StepSettings, _ entry: OpenID.Entry, _ preset: Preset) -> [SettingFinding] {
    var found: [SettingFinding] = []
    for name in preset.needs where !settings.isSet(name) {
      found.append(SettingFinding(name, "is missing: the preset \(preset.name) needs it"))
    }
    if entry == .openID, preset.issuer == nil, preset.needs.isEmpty, !settings.isSet("issuer") {
      found.append(SettingFinding("issuer", "is missing: write the address of the issuer, or a preset"))
    }
    if entry == .oauth, preset.name.isEmpty {
      for name in ["authorize", "token", "userinfo"] where !settings.isSet(name) {
        found.append(SettingFinding(name, "is missing: write the address at the site, or a preset"))
      }
    }
    if settings.text("sign_out") == SignOutRule.there.rawValue, !preset.signsOutByClient {
      found.append(
        SettingFinding(
          "sign_out",
          "\"there\" needs the ID token at \(preset.name) (id_token_hint), and the gateway keeps none, because it has all claims of the user: remove it. Users sign out here only"
        ))
    }
    return found + credentials(settings, entry, preset)
  }

  /// What proves the client's identity.
  private static func credentials(_ settings: StepSettings, _ entry: OpenID.Entry, _ preset: Preset)
    -> [SettingFinding]
  {
    var found: [SettingFinding] = []
    if let key = settings.secret("private_key") {
      let wrong: String? =
        if !ClientKey.isKey(key) {
          "is no private key in PEM: RSA, or the elliptic curves P-256, P-384 and Ed25519"
        } else if preset.clientAuth == .signedSecret, !ClientKey.isP256(key) {
          "is no key of the curve P-256, the only one that \(preset.name) takes"
        } else if settings.isSet("client_secret") {
          "stands beside a client_secret: remove the one that the site does not know"
        } else {
          nil
        }
      found += wrong.map { [SettingFinding("private_key", $0)] } ?? []
    }
    if let chosen = settings.text("client_auth").flatMap(ClientAuth.init) {
      let name = chosen == .privateKeyJWT ? "private_key" : "client_secret"
      if !settings.isSet(name), !preset.needs.contains(name) {
        found.append(
          SettingFinding("client_auth", "\"\(chosen.rawValue)\" needs \(name): write it, or remove client_auth"))
      }
    }
    if entry != .google, !preset.needs.contains("private_key"),
      !settings.isSet("client_secret"), !settings.isSet("private_key")
    {
      found.append(
        SettingFinding(
          "client_secret",
          entry == .openID ? "is missing: write the client's secret, or its private_key" : "is missing"))
    }
    for name in ["key_id", "team"] where settings.isSet(name) && !settings.isSet("private_key") {
      found.append(SettingFinding(name, "has no effect without private_key"))
    }
    let templates = [preset.issuer, preset.authorize, preset.token].compactMap(\.self) + Array(preset.profiles.values)
    for name in ["tenant", "server"] where settings.isSet(name) {
      if templates.contains(where: { $0.contains("{\(name)}") }) { continue }
      let user = preset.name.isEmpty ? "without a preset" : "with the preset \(preset.name)"
      found.append(SettingFinding(name, "has no effect \(user): remove it"))
    }
    return found
  }

  /// Addresses that a browser or the gateway would reach unencrypted.
  private static func addresses(_ settings: StepSettings, _ entry: OpenID.Entry, _ preset: Preset) -> [SettingFinding] {
    var texts = ["issuer", "server", "authorize", "token"].compactMap { name in settings.text(name).map { (name, $0) } }
    texts += settings.table("userinfo").sorted { $0.key < $1.key }.map { ("userinfo", $0.value) }
    return texts.compactMap { name, address in
      if Loopback.containsHost(of: address) {
        return SettingFinding(
          name,
          entry == .google
            ? "an issuer on this machine is for demos: mock Google lets anyone sign in as anyone. To use Google itself, remove `issuer`"
            : "an address on this machine is for demos: a mock lets anyone sign in as anyone. Write the real one",
          .localOnly)
      }
      guard !address.hasPrefix("https://") || !IssuerMetadata.isSafe(address) else { return nil }
      return SettingFinding(
        name,
        "\"\(address)\" is not \(name == "issuer" ? "an issuer" : "an address"): it must begin with https://, for example \"https://login.example.com\""
      )
    }
  }
}

/// The site of an entry, for messages.
private struct SiteFacts {
  let name: String
  let isLocal: Bool

  init(_ settings: StepSettings, _ entry: OpenID.Entry, _ preset: Preset) {
    name =
      entry == .oauth
      ? settings.text("token") ?? preset.token?.filled(by: settings) ?? "the site"
      : Issuer(settings, preset).address
    isLocal = Loopback.containsHost(of: name)
  }
}
