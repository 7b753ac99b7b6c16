import MoongateSDK

/// The names that `claims` of an app cannot return.
package enum AppClaims {
  /// What tokens mean, and what must be verified.
  ///
  /// Attack: a function that copies what a user typed into `email`, so that the user becomes somebody else at the app.
  package static let reserved: Set<String> = [
    "iss", "sub", "aud", "azp", "exp", "nbf", "iat", "jti", "auth_time", "nonce", "acr", "amr", "sid", "at_hash",
    "c_hash", "s_hash", "events", "cnf", "act", "may_act", "client_id", "scope", "typ", "sub_jwk", "_claim_names",
    "_claim_sources", "email", "email_verified", "phone_number", "phone_number_verified", "groups", "active",
    "token_type", "username",
  ]
}

extension Apps {
  /// The claims about a user, in their order: `sub`, those of the scopes, and those of the app's own function, which
  /// may replace those of the scope `profile`. ID tokens and userinfo have the same ones.
  package func claims(of session: SessionSnapshot, scopes: [String], _ app: App, _ call: AppCall)
    throws(PolicyFault) -> [AppClaim]
  {
    try generations.withEvaluator(of: call.generation) { evaluator throws(PolicyFault) in
      let known = try call.generation.accounts.entitlements(of: session, in: call.generation) {
        () throws(PolicyFault) in evaluator
      }
      var claims = [
        AppClaim(
          rule: app.isPairwise ? "subject = \"pairwise\"" : "subject = \"public\"", name: "sub",
          value: .text(app.subject(of: session.account.id, keys: keys)))
      ]
      for scope in scopes {
        claims += session.account.claims(of: scope, among: scopes, known).map {
          AppClaim(rule: "scope \"\(scope)\"", name: $0.0, value: $0.1)
        }
      }
      guard let function = app.claims else { return claims }
      let own = try evaluator.appClaims(of: function, given: facts(of: session, known, call, at: clock.now()))
      if let name = own.keys.filter(AppClaims.reserved.contains).min() {
        throw PolicyFault(
          kind: .result, location: app.locations["claims"],
          message: "`claims` returned `\(name)`, which only the gateway can state. Choose another name.")
      }
      return claims.filter { own[$0.name] == nil }
        + own.sorted { $0.key < $1.key }.map { AppClaim(rule: function.path, name: $0.key, value: $0.value) }
    }
  }

  /// The claims about the user of an access token.
  package func claims(of granted: AccessGranted, _ call: AppCall) throws(PolicyFault) -> [AppClaim] {
    guard let snapshot = granted.live.snapshot else { return [] }
    return try claims(
      of: snapshot, scopes: granted.scopes, granted.app, call.judged(by: granted.live.grant.signIn))
  }

  /// The methods of the steps (RFC 8176), without duplicates.
  func methods(of steps: [PassedStep], _ call: AppCall) -> [String] {
    let registry = call.generation.registry ?? providers
    var found: [String] = []
    for step in steps {
      guard let descriptor = registry.descriptor(step.provider) else { continue }
      found += descriptor.authenticationMethods(sendsCodes: registry[step.provider] is any CodeProvider).map(\.rawValue)
    }
    if Session.assuranceLevel(of: steps) > 1 { found.append("mfa") }
    var seen: Set<String> = []
    return found.filter { seen.insert($0).inserted }
  }
}

extension [AppClaim] {
  /// A JSON object with the claims, in their order.
  package var json: [UInt8] { Apps.json(map { ($0.name, $0.value) }) }
}

extension Account {
  /// The claims of a scope (OpenID Connect Core 1.0 section 5.4).
  ///
  /// Attack: an account claims `ceo@example.com` without having verified it, and an app signs its user in by address.
  /// Only verified identifiers are stated.
  fileprivate func claims(of scope: String, among scopes: [String], _ known: Entitlements) -> [(String, JSONClaim)] {
    switch scope {
    case AppScope.profile: profileClaims(mayNameEmail: scopes.contains(AppScope.email))
    case AppScope.email:
      verified(.email).map { [("email", .text($0.value)), ("email_verified", .flag(true))] } ?? []
    case AppScope.phone:
      verified(.phone).map { [("phone_number", .text($0.value)), ("phone_number_verified", .flag(true))] } ?? []
    case AppScope.groups: [("groups", .list(known.groups.map { .text($0.rawValue) }))]
    default: []
    }
  }

  private func profileClaims(mayNameEmail: Bool) -> [(String, JSONClaim)] {
    let name = [firstName, lastName].compactMap(\.self).joined(separator: " ")
    // A user name belongs to one account only. An address is another's in part, so it is stated whole or not at all.
    let user = identifier(.name)?.identifier.value ?? (mayNameEmail ? verified(.email)?.value : nil)
    let changed = identifiers.compactMap(\.verifiedAt).reduce(createdAt, max)
    let claims: [(String, String?)] = [
      ("name", name.isEmpty ? nil : name), ("given_name", firstName), ("family_name", lastName),
      ("preferred_username", user),
    ]
    return claims.compactMap { name, text in text.map { (name, .text($0)) } } + [("updated_at", Apps.number(changed))]
  }
}

/// Values of the claim `amr` (RFC 8176 section 2).
private enum AuthenticationMethod: String {
  case pin, otp, sms
  case password = "pwd"
  case proofOfPossession = "pop"
  case userPresence = "user"
}

extension ProviderDescriptor {
  /// How a step of the provider authenticates; empty if another site does it.
  fileprivate func authenticationMethods(sendsCodes: Bool) -> [AuthenticationMethod] {
    if sendsCodes { return identifierKinds.contains(.phone) ? [.otp, .sms] : [.otp] }
    switch presentation {
    case .digitPad: return [.pin]
    case .ceremony: return mayProveSeveralFactors ? [.proofOfPossession, .userPresence] : [.proofOfPossession]
    case .externalSite: return []
    case .codeEntry, .form, nil:
      if submitFields.contains(where: { $0.kind == .password }) { return [.password] }
      return role == .keepsFactor && submitFields.contains { $0.kind == .digits } ? [.otp] : []
    }
  }
}
