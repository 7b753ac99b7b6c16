import MoongateCore
import MoongateSDK

/// Reads apps.lua.
struct AppReader {
  let catalog: ProviderCatalog
  /// The groups of accounts.lua; nil if it could not be read.
  let groups: Set<GroupName>?
  /// `public_url`; nil if gateway.lua could not be read.
  let own: PublicURL?
  let secrets: SecretReader
  let problems: Problems

  private static let example = "mobile = app { public = true, redirect_uris = { \"com.example.app:/in\" } }"

  func read(_ node: LuaNode, functions: inout FunctionTable) -> AppTable {
    guard let reader = TableReader(node, nil, path: "", problems: problems) else { return .none }
    var apps: [App] = []
    var (owners, secretOwners): ([String: String], [String: String]) = ([:], [:])
    for id in reader.names {
      guard let entry = reader.explicitValue(id), let app = read(entry, id: id, functions: &functions) else { continue }
      reportShared(app, &owners)
      warnOfSharedSecret(app, &secretOwners)
      apps.append(app)
    }
    return AppTable(apps, own: own)
  }

  private func read(_ node: LuaNode, id: String, functions: inout FunctionTable) -> App? {
    guard case .tagged("app", let arguments) = node.value, arguments.count == 1,
      case .table = arguments[0].value
    else {
      problems.add(node.location, id, "must be an app, as in \(Self.example), not \(node.value.described)")
      return nil
    }
    guard App.isID(id) else {
      problems.add(
        node.location, id,
        "is not a valid client id: use at most 64 letters, digits, `.`, `_` and `-`, beginning with a letter or digit")
      return nil
    }
    guard let reader = TableReader(arguments[0], .app, path: id, problems: problems) else { return nil }
    let before = problems.all.count
    let name = reader.explicitValue("name").flatMap { readName($0, reader.path("name")) } ?? id
    let authentication = AppClientReader(secrets: secrets, own: own, problems: problems).read(reader, id: id)
    let addresses = AppAddressReader(own: own, problems: problems)
    let grants = readGrants(reader, authentication)
    let uris =
      grants.contains(.authorizationCode) || reader.explicitValue("redirect_uris") != nil
      ? addresses.readRedirects(reader) : []
    let (signOutURIs, notice) = (addresses.readSignOut(reader), addresses.read(reader, "sign_out_notice"))
    let requirement = RequirementReader(catalog: catalog, groups: groups, problems: problems).readOfApp(reader)
    let scopes = readScopes(reader, grants)
    let tokens = readTokens(reader)
    let consent = readConsent(reader, authentication)
    let pkceIsOptional = readPKCE(reader, authentication)
    let isPairwise = readSubject(reader, uris)
    let decide = add("decide", of: reader, to: &functions)
    let claims = add("claims", of: reader, to: &functions)
    reportRules(reader, grants)
    guard problems.all.count == before, let authentication, let consent, let tokens else { return nil }
    var locations = ["": node.location]
    for field in reader.names { locations[field] = reader.explicitValue(field)?.location }
    return App(
      id: id, name: name, redirectURIs: uris, consent: consent, authentication: authentication,
      signOutURIs: signOutURIs, signOutNotice: notice, requirement: requirement, decide: decide, claims: claims,
      scopes: scopes, grants: grants, signing: tokens.signing, accessToken: tokens.form, lifetimes: tokens.lifetimes,
      pkceIsOptional: pkceIsOptional, isPairwise: isPairwise, locations: locations)
  }

  /// Its name begins with `apps.`, so that the functions of an app called `accounts` are not those of accounts.lua.
  private func add(_ field: String, of reader: TableReader, to functions: inout FunctionTable) -> FunctionName? {
    let example = field == "claims" ? "function(f) return { role = \"Admin\" } end" : "function(f) return allow end"
    return reader.function(field, example: example).map { function in
      let name = FunctionName("apps.\(reader.path(field))")
      functions.add(name, function, for: .route)
      return name
    }
  }

  private func readName(_ node: LuaNode, _ path: String) -> String? {
    guard let name = Field.text(node, path, problems) else { return nil }
    if name.count <= 100, name.contains(where: { !$0.isWhitespace }), !name.contains("\n") { return name }
    problems.add(node.location, path, "must be a name that users recognise, in one line of at most 100 characters")
    return nil
  }

  // MARK: what the app may do

  private func readGrants(_ reader: TableReader, _ authentication: AppAuthentication?) -> Set<GrantType> {
    let path = reader.path("grants")
    guard let node = reader.explicitValue("grants") else { return [.authorizationCode, .refreshToken] }
    let words = (Field.texts(node, path, problems) ?? []).compactMap { item in
      Field.choice(item.node, path, problems, among: GrantType.allCases.map(\.word))
    }
    let grants = Set(GrantType.allCases.filter { words.contains($0.word) })
    if case .table(let table) = node.value, table.isEmpty {
      problems.add(node.location, path, "must list at least one grant, such as \"authorization_code\"")
    }
    // Attack: a client id is public, so anybody could be this app.
    if grants.contains(.clientCredentials), authentication == AppAuthentication.none {
      problems.add(
        node.location, path,
        "a public app cannot use `client_credentials`: it has nothing to prove who it is. Give it a secret or keys")
    }
    if grants.contains(.refreshToken), grants.isDisjoint(with: [.authorizationCode, .deviceCode]) {
      problems.add(
        node.location, path, "`refresh_token` has no use without `authorization_code` or `device_code`: add one of them"
      )
    }
    return grants
  }

  /// Reports rules about the users of an app that has none: they would read as if they limited its tokens.
  private func reportRules(_ reader: TableReader, _ grants: Set<GrantType>) {
    guard grants == [.clientCredentials] else { return }
    for field in ["require", "decide", "claims"] {
      guard let node = reader.explicitValue(field) else { continue }
      problems.add(
        node.location, reader.path(field),
        "applies to users, but `client_credentials` alone has none: remove it, or add the grant `authorization_code`")
    }
  }

  private func readScopes(_ reader: TableReader, _ grants: Set<GrantType>) -> Set<String> {
    let path = reader.path("scopes")
    guard let node = reader.explicitValue("scopes") else { return AppScope.standard }
    let texts = Field.texts(node, path, problems) ?? []
    if texts.count > 50 { problems.add(node.location, path, "lists \(texts.count) scopes; at most 50 are possible") }
    // RFC 6749 section 3.3.
    for item in texts where item.text.wholeMatch(of: /[\x21\x23-\x5B\x5D-\x7E]{1,64}/) == nil {
      problems.add(
        item.node.location, path,
        "\"\(item.text)\" is not a scope: use 1 to 64 printable ASCII characters without space, quotation mark and backslash"
      )
    }
    let scopes = Set(texts.map(\.text))
    if scopes.contains(AppScope.offline), !grants.contains(.refreshToken) {
      problems.add(node.location, path, "`offline_access` requires the grant `refresh_token`")
    }
    return scopes
  }

  private func readConsent(_ reader: TableReader, _ authentication: AppAuthentication?) -> App.Consent? {
    guard reader.explicitValue("consent") != nil else {
      return authentication == AppAuthentication.none ? .once : .never
    }
    return reader.choice("consent", App.Consent.self)
  }

  /// - Returns: whether PKCE is optional.
  private func readPKCE(_ reader: TableReader, _ authentication: AppAuthentication?) -> Bool {
    guard reader.choice("pkce", AppPKCE.self) == .optional else { return false }
    // Attack: code injection (RFC 9700 section 4.5). A public app has nothing else that binds the code to it.
    if authentication == AppAuthentication.none {
      problems.add(
        reader.explicitValue("pkce")?.location ?? reader.location, reader.path("pkce"),
        "must be \"required\" for a public app: only PKCE protects its codes")
    }
    return true
  }

  /// - Returns: whether the subject differs from app to app.
  private func readSubject(_ reader: TableReader, _ uris: [RedirectURI]) -> Bool {
    guard reader.choice("subject", AppSubject.self) == .pairwise else { return false }
    // OpenID Connect Core section 8.1: the sector is the host of the redirect URIs.
    if Set(uris.map(\.origin?.host)).count != 1 || uris.first?.origin == nil {
      problems.add(
        reader.explicitValue("subject")?.location ?? reader.location, reader.path("subject"),
        "\"pairwise\" requires https `redirect_uris` on one host, by which the subjects are computed")
    }
    return true
  }

  // MARK: tokens

  private struct Tokens {
    let signing: SigningAlgorithm
    let form: AccessTokenForm
    let lifetimes: AppLifetimes
  }

  /// How long the public keys of a period stay published after it, and so the most that a signed token may live.
  private static let longestSigned: Duration = .seconds(86_400)

  private func readTokens(_ reader: TableReader) -> Tokens? {
    let signing = reader.choice("signing", SigningAlgorithm.self)
    let isJWT = reader.choice("access_token", AppAccessTokenWord.self) == .jwt
    let audience = readAudience(reader, isJWT: isJWT)
    let path = reader.path("lifetimes")
    let node = reader.explicitValue("lifetimes") ?? LuaNode(value: .table(LuaTable()), location: reader.location)
    guard let table = TableReader(node, .appLifetimes, path: path, problems: problems) else { return nil }
    let read = { (name: String, isSigned: Bool) -> Duration? in
      guard let duration = table.duration(name, atLeast: .seconds(1)) else { return nil }
      if isSigned, duration > Self.longestSigned {
        problems.add(
          table.explicitValue(name)?.location ?? table.location, table.path(name),
          "must be at most \"1d\": the key that signs such a token is published for one more day")
      }
      return duration
    }
    let (id, access, refresh) = (read("id_token", true), read("access_token", isJWT), read("refresh_token", false))
    guard let signing, let id, let access, let refresh else { return nil }
    return Tokens(
      signing: signing, form: isJWT ? .jwt(audience: audience) : .opaque,
      lifetimes: AppLifetimes(idToken: id, accessToken: access, refreshToken: refresh))
  }

  private func readAudience(_ reader: TableReader, isJWT: Bool) -> [String] {
    let path = reader.path("audience")
    guard isJWT else {
      if let node = reader.explicitValue("audience") {
        problems.add(node.location, path, "applies only to access_token = \"jwt\": remove it, or add that")
      }
      return []
    }
    guard let node = reader.require("audience"), let texts = Field.texts(node, path, problems) else { return [] }
    if texts.isEmpty {
      problems.add(node.location, path, "must list at least one API, such as \"https://api.example.com\"")
    }
    for item in texts {
      // Attack: an access token whose audience is another app's client id, or the gateway, which that app takes for an
      // ID token. A client id contains no colon.
      if item.text.utf8.count > 255 || item.text.wholeMatch(of: /[A-Za-z][A-Za-z0-9+.\-]*:[\x21-\x7E]+/) == nil {
        problems.add(
          item.node.location, path,
          "\"\(item.text)\" is not an absolute URI of at most 255 characters, such as \"https://api.example.com\"")
      } else if let own, WebAddress(item.text)?.origin == own {
        problems.add(
          item.node.location, path, "\"\(item.text)\" is on `public_url`, the gateway's own origin: write an API's URI")
      }
    }
    return texts.map(\.text)
  }

  // MARK: several apps

  /// Reports redirect URIs that an earlier app has too, if flows of the API, which name no app, may send both their
  /// codes: such a code has no certain owner. OpenID Connect names the app in each request, and binds the code to it.
  /// - Parameter owners: the apps by their addresses, loopback addresses without their port.
  private func reportShared(_ app: App, _ owners: inout [String: String]) {
    guard app.takesFlows else { return }
    for (index, uri) in app.redirectURIs.enumerated() {
      let other = owners.updateValue(app.id, forKey: AppAddressReader.key(of: uri))
      guard let other, other != app.id else { continue }
      problems.add(
        app.locations["redirect_uris"] ?? SourceLocation(file: "apps.lua", line: 0),
        "\(app.id).redirect_uris[\(index + 1)]",
        "\"\(uri.text)\" is also an address of `\(other)`: give each public app addresses of its own")
    }
  }

  /// Warns of a secret that an earlier app has too.
  ///
  /// Attack: an app signs in as another one, and gets its users' claims and the tokens of its grants.
  /// - Parameter owners: the apps by their secrets.
  private func warnOfSharedSecret(_ app: App, _ owners: inout [String: String]) {
    guard case .secret(let secret) = app.authentication else { return }
    guard let other = owners.updateValue(app.id, forKey: secret.reveal()) else { return }
    problems.warn(
      app.locations["secret"] ?? SourceLocation(file: "apps.lua", line: 0), "\(app.id).secret",
      "is also the secret of `\(other)`, so each of them can claim to be the other: `moongate app secret \(app.id)` writes a new one"
    )
  }
}

extension AppTable {
  /// Why no user can sign in to an app with this client id; nil if users can.
  func problem(ofSigningInTo id: String) -> String? {
    guard let app = self[id] else {
      return "apps.lua defines no app \"\(id)\"\(Suggestion.phrase(for: id, among: apps.map(\.id)))"
    }
    return app.signsUsersIn ? nil : "no user signs in to the app \"\(id)\": its only grant is `client_credentials`"
  }
}
