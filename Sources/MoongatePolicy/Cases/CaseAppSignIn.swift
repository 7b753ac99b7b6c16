import MoongateCore
import MoongateSDK

// `app "grafana"`: a user signs in to an app. apps.lua decides about it as in production.

extension TableShape {
  static let caseAppSignIn = TableShape(
    name: "CaseAppSignIn", summary: "What an app asks for when a user signs in to it.",
    entries: [
      .optional("scopes", "string[]", "the scopes, as in { \"openid\", \"email\" }; by default all that it may ask for")
    ])
}

extension CaseReader {
  /// Reads `app "grafana"` and `app "grafana" { scopes = { "openid" } }`.
  func appSignIn(_ node: LuaNode, _ body: LuaNode?) -> PolicyCase.AppSignInSetup? {
    guard case .text = node.value else {
      problems.add(node.location, "app", "in a case, name an app of apps.lua, as in app \"grafana\"")
      return nil
    }
    guard let id = Field.text(node, "app", problems) else { return nil }
    if let problem = apps?.problem(ofSigningInTo: id) {
      problems.add(node.location, "app", problem)
      return nil
    }
    var setup = PolicyCase.AppSignInSetup(app: id)
    guard let body else { return setup }
    guard let reader = TableReader(body, .caseAppSignIn, path: "app", problems: problems) else { return nil }
    let path = reader.path("scopes")
    let scopes = reader.explicitValue("scopes").flatMap { Field.texts($0, path, problems) }
    if let app = apps?[id] {
      for item in scopes ?? [] where !app.scopes.contains(item.text) {
        let known = app.scopes.sorted()
        problems.add(
          item.node.location, path,
          "`\(id)` may not ask for the scope \"\(item.text)\"\(Suggestion.phrase(for: item.text, among: known))")
      }
    }
    setup.scopes = scopes?.map(\.text)
    return setup
  }

  /// `claims` of `expect`.
  func expectedClaims(_ reader: TableReader) -> [String: JSONClaim] {
    guard let node = reader.explicitValue("claims"),
      let table = TableReader(node, nil, path: reader.path("claims"), problems: problems)
    else { return [:] }
    var claims: [String: JSONClaim] = [:]
    for name in table.names {
      guard let node = table.explicitValue(name) else { continue }
      do throws(AppClaimsResult.Problem) { claims[name] = try AppClaimsResult.value(of: node, in: name) } catch {
        problems.add(node.location, table.path(name), error.message)
      }
    }
    return claims
  }
}

extension CaseRun {
  /// - Returns: the outcome in words.
  mutating func signIn(_ setup: PolicyCase.AppSignInSetup, _ act: PolicyCase.Act) async throws -> String {
    try await makeAccount(act)
    guard let app = generation.apps[setup.app] else { throw fail(act, "apps.lua defines no app \"\(setup.app)\"") }
    let scopes = app.permitted(setup.scopes ?? app.scopes.sorted())
    switch try await gateway.signIn(to: app, scopes: scopes, session: session, by: client) {
    case .success(let claims): answer = .signedIn(app, claims)
    case .failure(let refusal): answer = .refusal(refusal)
    }
    return outcomeText
  }
}

extension PolicyCase.AppSignInSetup {
  /// The act in Lua syntax.
  var asWritten: String {
    guard let scopes else { return "app \"\(app)\"" }
    return "app \"\(app)\" { scopes = { \(scopes.map { "\"\($0)\"" }.joined(separator: ", ")) } }"
  }
}
