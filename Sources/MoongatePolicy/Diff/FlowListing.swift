import MoongateCore
import MoongateSDK

/// The settings of flows, of apps.lua and of gateway.lua that affect sign-ins, one per line.
enum FlowListing {
  static func lines(_ flow: FlowDefinition) -> [PolicyListing.Line] {
    var lines: [PolicyListing.Line] = []
    func add(_ path: String, _ value: String, _ location: SourceLocation? = nil) {
      let location = location ?? flow.location
      lines.append(
        PolicyListing.Line(path: path, value: value, file: location.file, line: location.line > 0 ? location.line : nil)
      )
    }
    add("account", "\"\(flow.account.rawValue)\"")
    let registers = flow.registers.sorted().map { "\"\($0)\"" }.joined(separator: ", ")
    if !registers.isEmpty { add("registers", "{ \(registers) }") }
    for (index, step) in flow.steps.enumerated() {
      let path = "steps[\(index + 1)]"
      let location = index < flow.stepLocations.count ? flow.stepLocations[index] : flow.location
      let choices = step.choices.map { "\"\($0)\"" }.joined(separator: ", ")
      let words = step.choices.count == 1 ? choices : "\(step.isFallback ? "fallback" : "any_of") { \(choices) }"
      add(path, words + (step.isSkippable ? ", skippable" : ""), location)
      if step.when != nil { add("\(path).when", "function", location) }
    }
    add("lifetime", "\"\(flow.lifetime.asWritten)\"")
    add("session.lifetime", "\"\(flow.session.lifetime.asWritten)\"")
    add("session.idle", "\"\(flow.session.idle.asWritten)\"")
    if let remember = flow.session.remember {
      add("session.remember.lifetime", "\"\(remember.lifetime.asWritten)\"")
      add("session.remember.idle", "\"\(remember.idle.asWritten)\"")
    }
    return lines
  }

  /// The settings of apps.
  /// - Parameter other: the apps of the other configuration. The defaults of an app that it does not have are left out.
  static func lines(_ apps: AppTable, beside other: AppTable) -> [PolicyListing.Line] {
    apps.apps.flatMap { app in
      app.values.compactMap { field, value in
        let location = app.locations[String(field.prefix { $0 != "." })]
        guard location != nil || other[app.id] != nil else { return nil }
        return PolicyListing.Line(path: "\(app.id).\(field)", value: value, file: location?.file, line: location?.line)
      }
    }
  }

  /// Without the folder, which differs from configuration to configuration.
  private static func fileName(_ path: String?) -> String {
    path.map { "\"\($0.split(separator: "/").last ?? "")\"" } ?? "none"
  }

  static func lines(_ gateway: GatewaySettings) -> [PolicyListing.Line] {
    let providers = gateway.providers.keys.sorted().map(\.rawValue).joined(separator: ", ")
    let values: [(String, String)] = [
      ("public_url", "\"\(gateway.publicURL)\""), ("region", gateway.region.isEmpty ? "none" : "\"\(gateway.region)\""),
      ("risk_budget", gateway.riskBudget.map { "\(GuessBudget.percent($0)) in 30 days" } ?? "none"),
      ("providers", "{ \(providers) }"),
      ("geo.database", fileName(gateway.geo?.countries)), ("geo.asn", fileName(gateway.geo?.systems)),
    ]
    let chosen = gateway.providers.sorted { $0.key < $1.key }.compactMap { name, settings in
      settings.identifyBy.map { kinds in
        ("providers.\(name).identify_by", "{ \(kinds.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")) }")
      }
    }
    let rechecked = gateway.providers.sorted { $0.key < $1.key }.flatMap { name, settings in
      (settings.recheck.map { [("recheck", $0.interval), ("recheck_grace", $0.grace)] } ?? []).map {
        ("providers.\(name).\($0)", "\"\($1.asWritten)\"")
      }
    }
    return (values + chosen + rechecked).map { path, value in
      let location = gateway.locations[path]
      return PolicyListing.Line(path: path, value: value, file: location?.file, line: location?.line)
    }
  }
}

extension App {
  /// The settings in Lua syntax, without the secret.
  fileprivate var values: [(field: String, value: String)] {
    let quoted = PolicyListing.quoted
    let list = { (texts: [String]) in "{ \(texts.map(quoted).joined(separator: ", ")) }" }
    var values: [(field: String, value: String)] = [
      ("name", quoted(name)), authenticationValue, ("redirect_uris", list(redirectURIs.map(\.text))),
    ]
    if !signOutURIs.isEmpty { values.append(("sign_out_uris", list(signOutURIs.map(\.text)))) }
    if let signOutNotice { values.append(("sign_out_notice", quoted(signOutNotice))) }
    if !requirement.isEmpty { values.append(("require", requirement.asWritten)) }
    if decide != nil { values.append(("decide", "function")) }
    if claims != nil { values.append(("claims", "function")) }
    values += [
      ("scopes", list(scopes.sorted())), ("consent", quoted(consent.rawValue)),
      ("grants", list(GrantType.allCases.filter(grants.contains).map(\.word))), ("signing", quoted(signing.rawValue)),
    ]
    switch accessToken {
    case .opaque: values.append(("access_token", quoted(AppAccessTokenWord.opaque.rawValue)))
    case .jwt(let audience):
      values += [("access_token", quoted(AppAccessTokenWord.jwt.rawValue)), ("audience", list(audience))]
    }
    return values + [
      ("lifetimes.id_token", quoted(lifetimes.idToken.asWritten)),
      ("lifetimes.access_token", quoted(lifetimes.accessToken.asWritten)),
      ("lifetimes.refresh_token", quoted(lifetimes.refreshToken.asWritten)),
      ("pkce", quoted((pkceIsOptional ? AppPKCE.optional : .required).rawValue)),
      ("subject", quoted((isPairwise ? AppSubject.pairwise : .public).rawValue)),
    ]
  }

  private var authenticationValue: (field: String, value: String) {
    switch authentication {
    case .none: ("public", "true")
    case .secret: ("secret", "a secret")
    case .keys(let address): ("keys", PolicyListing.quoted(address))
    }
  }
}
