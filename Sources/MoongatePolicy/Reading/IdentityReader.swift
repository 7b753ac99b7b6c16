import MoongateCore

/// Reads `identity` and `encoding`: how a service learns who the user is.
struct IdentityReader {
  /// The claims of accounts.lua; nil if it could not be read.
  let claims: Set<String>?
  let secrets: SecretReader
  let problems: Problems

  func read(_ reader: TableReader) -> ServiceIdentity {
    var identity = ServiceIdentity()
    identity.encoding = reader.choice("encoding", HeaderEncoding.self) ?? .utf8
    let path = reader.path("identity")
    guard let node = reader.explicitValue("identity"),
      let table = TableReader(node, .routeIdentity, path: path, problems: problems)
    else { return identity }
    if table.names.isEmpty {
      problems.add(node.location, path, "names no header: write { user = \"X-User\" }, or leave it out")
    }
    for statement in ServiceIdentity.Statement.allCases {
      identity.headers[statement] = header(statement, table)
    }
    identity.basic = table.take("basic").flatMap { basic($0, table.path("basic")) }
    return identity
  }

  /// Reads `user = "X-User"` or `user = { "X-User", value = "{email}" }`.
  private func header(_ statement: ServiceIdentity.Statement, _ table: TableReader) -> ServiceIdentity.Header? {
    let path = table.path(statement.rawValue)
    guard let node = table.take(statement.rawValue) else { return nil }
    var name = node
    var value = IdentityTemplate([statement.usualPart])
    if case .table = node.value {
      guard let inner = TableReader(node, .identityHeader, path: path, problems: problems, allowsItems: true) else {
        return nil
      }
      guard inner.items.count == 1 else {
        problems.add(node.location, path, "must begin with one header, as in { \"X-User\", value = \"{email}\" }")
        return nil
      }
      name = inner.items[0]
      if let node = inner.take("value") {
        guard let template = template(node, inner.path("value")) else { return nil }
        value = template
        if !template.hasPlaceholder {
          problems.add(
            node.location, inner.path("value"),
            "is the same for all users: use a part such as {email} in it, or set the header by `headers`")
        } else if statement == .user {
          warnOfSharedNames(template, node, inner.path("value"))
        }
      }
    }
    guard let text = Field.text(name, path, problems) else { return nil }
    if let problem = HeaderRules.problem(ofIdentity: text) {
      problems.add(name.location, path, problem)
      return nil
    }
    return ServiceIdentity.Header(name: text, value: value)
  }

  private func basic(_ node: LuaNode, _ path: String) -> ServiceIdentity.Basic? {
    guard let table = TableReader(node, .identityBasic, path: path, problems: problems) else { return nil }
    let user = table.take("user").flatMap { template($0, table.path("user")) }
    let password = table.take("password").flatMap { secrets.read($0, table.path("password"), problems) }
    if let user, let node = table.explicitValue("user") { warnOfSharedNames(user, node, table.path("user")) }
    // RFC 7617 section 2: a user-id has no colon, and neither part has control characters.
    if let node = table.explicitValue("user"), user?.hasColon ?? false {
      problems.add(node.location, table.path("user"), "must have no colon, which separates the user from the password")
    }
    if let node = table.explicitValue("password"),
      password?.reveal().utf8.contains(where: { $0 < 32 || $0 == 127 }) ?? false
    {
      problems.add(node.location, table.path("password"), "must be one line without control characters")
    }
    guard let user, let password else { return nil }
    return ServiceIdentity.Basic(user: user, password: password)
  }

  /// Attack: a user takes the name of another one, whom the service then believes to see.
  private func warnOfSharedNames(_ template: IdentityTemplate, _ node: LuaNode, _ path: String) {
    guard template.hasPlaceholder, !template.isOfOneUser else { return }
    problems.warn(
      node.location, path,
      "two users can have the same value, because users choose their names: use {id}, {email}, {phone} or {username}")
  }

  private func template(_ node: LuaNode, _ path: String) -> IdentityTemplate? {
    IdentityTemplateReader(claims: claims, problems: problems).read(node, path)
  }
}

extension ServiceIdentity.Statement {
  /// What its header contains without `value`.
  fileprivate var usualPart: IdentityTemplate.Part {
    switch self {
    case .user: .id
    case .email: .email
    case .phone: .phone
    case .name: .name
    case .groups: .groups
    }
  }
}

extension IdentityTemplate {
  /// Whether it depends on the user.
  fileprivate var hasPlaceholder: Bool {
    parts.contains { if case .text = $0 { false } else { true } }
  }

  /// Whether it contains what no two users share, or a claim, which the operator decides about.
  fileprivate var isOfOneUser: Bool {
    parts.contains {
      switch $0 {
      case .id, .email, .phone, .username, .claim: true
      case .text, .name, .firstName, .lastName, .groups: false
      }
    }
  }

  /// Whether its fixed text has a colon.
  fileprivate var hasColon: Bool {
    parts.contains { if case .text(let text) = $0 { text.contains(":") } else { false } }
  }
}

/// Reads a text with placeholders, such as `{first_name} {last_name}`.
struct IdentityTemplateReader {
  private static let placeholders: [String: IdentityTemplate.Part] = [
    "id": .id, "email": .email, "phone": .phone, "name": .name, "username": .username, "first_name": .firstName,
    "last_name": .lastName, "groups": .groups,
  ]
  private static let claimPrefix = "claim."

  /// The claims of accounts.lua; nil if it could not be read.
  let claims: Set<String>?
  let problems: Problems

  func read(_ node: LuaNode, _ path: String) -> IdentityTemplate? {
    guard let text = Field.text(node, path, problems) else { return nil }
    guard !text.isEmpty, HeaderRules.isValue(text) else {
      problems.add(node.location, path, text.isEmpty ? "is empty" : HeaderRules.valueRule)
      return nil
    }
    var parts: [IdentityTemplate.Part] = []
    var rest = Substring(text)
    while !rest.isEmpty {
      let plain = rest.prefix { $0 != "{" && $0 != "}" }
      if !plain.isEmpty { parts.append(.text(String(plain))) }
      rest = rest[plain.endIndex...]
      guard !rest.isEmpty else { break }
      guard rest.first == "{", let end = rest.firstIndex(of: "}") else {
        problems.add(node.location, path, "\"\(text)\" has a brace without its other one; write parts as in {email}")
        return nil
      }
      switch Self.part(String(rest[..<end].dropFirst()), claims) {
      case .success(let part): parts.append(part)
      case .failure(let unknown):
        problems.add(node.location, path, unknown.message)
        return nil
      }
      rest = rest[end...].dropFirst()
    }
    return IdentityTemplate(parts)
  }

  /// A placeholder that does not exist.
  private struct Unknown: Error {
    let message: String
  }

  private static func part(_ name: String, _ claims: Set<String>?) -> Result<IdentityTemplate.Part, Unknown> {
    if let part = placeholders[name] { return .success(part) }
    if name.hasPrefix(claimPrefix) {
      let claim = String(name.dropFirst(claimPrefix.count))
      if claims?.contains(claim) ?? true { return .success(.claim(claim)) }
      let advice = Suggestion.phrase(for: claim, among: claims ?? [])
      return .failure(
        Unknown(message: "{\(name)} needs the claim `\(claim)`, which accounts.lua does not define\(advice)"))
    }
    let names = placeholders.keys + ["\(claimPrefix)NAME"]
    return .failure(Unknown(message: "unknown part {\(name)}\(Suggestion.phrase(for: name, among: names))"))
  }
}
