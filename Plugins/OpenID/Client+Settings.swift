import MoongateSDK

/// The settings of an entry in gateway.lua.
extension Client {
  static func settings(of entry: OpenID.Entry) -> [SettingField] {
    let own =
      switch entry {
      case .google: [issuer("The issuer, exactly as in its discovery document. Default: Google.")]
      case .openID:
        [
          preset(entry), issuer("The issuer, exactly as in its discovery document. Default: that of the preset."),
          SettingField(
            name: "tenant", kind: .text, isRequired: false,
            help: "The tenant of the preset microsoft, such as \"contoso.onmicrosoft.com\"."),
        ]
      case .oauth: [preset(entry)] + endpoints
      }
    return own + registration(of: entry) + request + (entry == .oauth ? [] : tokens) + trust
  }

  private static func preset(_ entry: OpenID.Entry) -> SettingField {
    SettingField(
      name: "preset", kind: .choice(Preset.all(of: entry).map(\.name)), isRequired: false,
      help: "The site whose settings are filled in.")
  }

  private static func issuer(_ help: String) -> SettingField {
    SettingField(name: "issuer", kind: .text, isRequired: false, help: help)
  }

  /// Of a site without discovery.
  private static let endpoints = [
    SettingField(
      name: "server", kind: .text, isRequired: false,
      help: "The address of the server, for presets of sites that you can install yourself."),
    SettingField(
      name: "authorize", kind: .text, isRequired: false, help: "The address to which users are sent to sign in."),
    SettingField(
      name: "token", kind: .text, isRequired: false, help: "The address that exchanges a code for an access token."),
    SettingField(
      name: "userinfo", kind: .table, isRequired: false,
      help: "The addresses that say who the user is. One with a name becomes a claim of that name."),
    SettingField(
      name: "subject", kind: .text, isRequired: false,
      help: "The claim that identifies a user forever. Default: sub, otherwise id."),
    issuer(
      "The issuer that the site names in its answers (iss of RFC 9207), which is then required. Default: the origin of token, if it names one."
    ),
  ]

  private static func registration(of entry: OpenID.Entry) -> [SettingField] {
    let methods = entry == .openID ? ClientAuth.chosen : [.basic, .post]
    var fields = [
      SettingField(
        name: "client_id", kind: .text, isRequired: true, help: "The client id from the registration at the site."),
      SettingField(
        name: "client_secret", kind: .secret, isRequired: entry == .google,
        help: "The client secret: env \"NAME\" or file \"path\"."),
      SettingField(
        name: "client_auth", kind: .choice(methods.map(\.rawValue)), isRequired: false,
        help: "How the client proves its identity. Default: the first of these that the site offers."),
    ]
    if entry == .openID {
      fields += [
        SettingField(
          name: "private_key", kind: .secret, isRequired: false,
          help: "The client's private key in PEM, in place of a secret: file \"path\"."),
        SettingField(
          name: "key_id", kind: .text, isRequired: false, help: "The id under which the site knows the key."),
        SettingField(name: "team", kind: .text, isRequired: false, help: "The developer team of the preset apple."),
      ]
    }
    return fields
  }

  /// Of the authorization request.
  private static let request = [
    SettingField(
      name: "scopes", kind: .list, isRequired: false,
      help: "What to ask for. Default: openid, profile and email, or what the preset asks for."),
    SettingField(
      name: "response_mode", kind: .choice(ResponseMode.allCases.map(\.rawValue)), isRequired: false,
      help: "How the site returns its answer. Default: \"query\", or that of the preset."),
    SettingField(
      name: "prompt", kind: .text, isRequired: false,
      help: "Whether the site asks users again, such as \"login\" or \"select_account\"."),
    SettingField(
      name: "parameters", kind: .table, isRequired: false,
      help: "Further parameters of the request, as in { hd = \"example.com\" }."),
  ]

  /// Of ID tokens.
  private static let tokens = [
    SettingField(
      name: "max_age", kind: .number(0...31_536_000), isRequired: false,
      help: "How many seconds ago a user may have signed in at the issuer, at most."),
    SettingField(
      name: "acr_values", kind: .text, isRequired: false,
      help: "The authentication contexts to ask for. Check f.claims.acr in `identity` of the policy."),
    SettingField(
      name: "sign_out", kind: .choice(SignOutRule.allCases.map(\.rawValue)), isRequired: false,
      help: "Whether signing out continues at the issuer, where users sign out as well.",
      standard: .text(SignOutRule.here.rawValue)),
    SettingField(
      name: "apps", kind: .text, isRequired: false,
      help: "The client ids of your own apps, separated by spaces: ID tokens issued to them are accepted too."),
    SettingField(
      name: "audiences", kind: .list, isRequired: false,
      help: "Other audiences that an ID token may name beside the client id. Default: none."),
    SettingField(
      name: "userinfo", kind: .choice(UserInfoUse.allCases.map(\.rawValue)), isRequired: false,
      help:
        "When the userinfo endpoint is asked: if the ID token lacks the address or name, always, or never. Default: \"missing\", or that of the preset."
    ),
    SettingField(
      name: "algorithms", kind: .list, isRequired: false,
      help:
        "The signature algorithms of ID tokens that are accepted. Default: all of RS256, PS256, ES256, ES384, EdDSA."),
  ]

  /// Of addresses.
  private static let trust = [
    SettingField(
      name: "trusted_domains", kind: .list, isRequired: false,
      help:
        "The domains for whose email addresses the site is authoritative. Default: for Google gmail.com and the token's hd, otherwise none."
    ),
    SettingField(
      name: "email_verified", kind: .choice(EmailRule.allCases.map(\.rawValue)), isRequired: false,
      help: "Whether an address counts as verified only by the claim, or always.",
      standard: .text(EmailRule.claim.rawValue)),
  ]
}
