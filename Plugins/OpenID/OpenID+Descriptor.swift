import MoongateSDK

extension OpenID {
  /// The three entries differ in their settings and words, and in that only Google has a name of its own.
  static func descriptor(of entry: Entry) -> ProviderDescriptor {
    var submitFields = ["code", "state", "iss", "error"].map { name in
      InputField(name: name, kind: .text, isRequired: name == "code")
    }
    if entry != .oauth { submitFields.append(InputField(name: "id_token", kind: .text, isRequired: false)) }
    // Apple sends the name of a user beside the code, once.
    let user = InputField(name: "user", kind: .text, isRequired: false)
    if entry == .openID { submitFields.append(user) }
    let button = entry == .google ? "Continue with Google" : "Continue with another site"
    return ProviderDescriptor(
      name: name(of: entry), beginFields: [], submitFields: submitFields, settings: Client.settings(of: entry),
      policy: source("policy.lua", PackageResources.policy_lua, of: entry, name: "policy"),
      flows: [
        source(
          "flows/google_oauth_join.lua", PackageResources.google_oauth_join_lua, of: entry,
          name: "\(entry.rawValue)_join")
      ],
      cases: source("cases.lua", PackageResources.cases_lua, of: entry, name: "cases"),
      identifierKinds: [.federated, .email],
      outcomes: [
        Outcome(.oauthFailed, entry == .google ? "Google sign-in failed. Try again." : "Sign-in failed. Try again."),
        Outcome(.oauthCancelled, "Sign-in cancelled", isFailure: false),
      ], facts: [.emailDomain],
      words: StepWords(
        title: button, name: entry == .google ? "Google" : "Another site", translations: PackageResources.translations),
      presentation: .externalSite(button: button),
      entrance: .button(
        label: button, icon: entry == .google ? String(decoding: PackageResources.icon_svg, as: UTF8.self) : nil,
        priority: 100),
      role: .provesIdentifier, mapsClaims: true, rechecks: true, isKind: entry != .google,
      callbackFields: ProviderDescriptor.standardCallbackFields + (entry == .openID ? [user] : []),
      receivesWebhooks: entry != .oauth)
  }

  private static func name(of entry: Entry) -> ProviderName {
    switch entry {
    case .google: "google_oauth"
    case .openID: "openid"
    case .oauth: "oauth"
    }
  }

  /// A Lua file of this provider, which names the first entry, for any of them. Problems name the file, followed by the
  /// entry.
  private static func source(_ file: String, _ bytes: [UInt8], of entry: Entry, name: String) -> PolicySource {
    let text = String(decoding: bytes, as: UTF8.self).replacing(Entry.google.rawValue, with: entry.rawValue)
    let path = "Plugins/OpenID/\(file)" + (entry == .google ? "" : " (\(entry.rawValue))")
    return PolicySource(file: path, text: text, name: name)
  }
}
