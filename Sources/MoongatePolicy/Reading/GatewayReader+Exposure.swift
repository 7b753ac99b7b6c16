import MoongateCore

// The settings that decide who can reach the admin listener, and how browsers reach the gateway.
extension GatewayReader {
  /// A shorter token can be guessed over a network.
  private static let leastToken = 16

  /// The address of the admin listener, and the tokens that it accepts.
  typealias Admin = (address: ListenAddress, token: SecretText?, tokens: [AdminToken])

  /// Reads `admin = "127.0.0.1:9901"`, or `{ address = "…", token = env "…", tokens = { … } }`.
  ///
  /// Attack: `admin = "0.0.0.0:9901"`. Anyone who can reach that port can read every code of the outbox, and unlock and
  /// delete accounts.
  func readAdmin(_ reader: TableReader) -> Admin? {
    guard let node = reader.take("admin") else { return nil }
    guard case .table = node.value else {
      guard let address = address(reader, "admin") else { return nil }
      return judge((address, nil, []), at: node)
    }
    guard let table = TableReader(node, .admin, path: "admin", problems: problems) else { return nil }
    let before = problems.all.count
    let address = address(table, "address")
    let token = table.take("token").flatMap { readToken($0, table.path("token")) }
    let tokens = readTokens(table, unnamed: token)
    guard problems.all.count == before, let address else { return nil }
    return judge((address, token, tokens), at: table.explicitValue("address") ?? node)
  }

  /// Reads `tokens = { { name = "grafana", role = "read", token = env "…" } }`.
  private func readTokens(_ table: TableReader, unnamed: SecretText?) -> [AdminToken] {
    guard let node = table.take("tokens") else { return [] }
    let path = table.path("tokens")
    guard case .table(let list) = node.value, list.isList else {
      problems.add(
        node.location, path,
        "must be a list of tokens, as in { { name = \"grafana\", role = \"read\", token = env \"GRAFANA_TOKEN\" } }")
      return []
    }
    var tokens: [AdminToken] = []
    for (index, item) in list.items.enumerated() {
      let path = "\(path)[\(index + 1)]"
      guard let reader = TableReader(item, .adminToken, path: path, problems: problems) else { continue }
      let name = readTokenName(reader, among: tokens)
      let role = reader.choice("role", AdminToken.Role.self)
      let token = reader.take("token").flatMap { readToken($0, reader.path("token")) }
      guard let name, let role, let token else { continue }
      // Attack on ourselves: one token under two names. The audit trail could not tell the callers apart.
      if (tokens.map(\.secret) + [unnamed].compactMap(\.self)).contains(where: { $0.reveal() == token.reveal() }) {
        problems.add(
          item.location, reader.path("token"),
          "is the same as another token: give each token its own value, for example the output of `openssl rand -hex 32`"
        )
        continue
      }
      tokens.append(AdminToken(name: name, role: role, secret: token))
    }
    return tokens
  }

  private func readTokenName(_ reader: TableReader, among tokens: [AdminToken]) -> String? {
    guard let node = reader.take("name"), let name = Field.text(node, reader.path("name"), problems) else { return nil }
    guard name.wholeMatch(of: /[A-Za-z0-9][A-Za-z0-9._@-]{0,63}/) != nil else {
      problems.add(
        node.location, reader.path("name"),
        "\"\(name)\" is not a valid name: use at most 64 letters, digits, dots, hyphens, underscores and @")
      return nil
    }
    guard name != AdminToken.unnamed, !tokens.contains(where: { $0.name == name }) else {
      problems.add(
        node.location, reader.path("name"),
        "there is another token \"\(name)\": names of tokens must be unique")
      return nil
    }
    return name
  }

  private func judge(_ admin: Admin, at node: LuaNode) -> Admin {
    let address = admin.address
    if address.isLoopback || admin.token != nil || !admin.tokens.isEmpty { return admin }
    problems.addUnsafe(
      node.location, "admin",
      "other hosts can reach \(address), and the admin listener does not authenticate calls: listen on 127.0.0.1 or set a token, as in "
        + "{ address = \"\(address)\", token = env \"MOONGATE_ADMIN_TOKEN\" }")
    return admin
  }

  private func readToken(_ node: LuaNode, _ path: String) -> SecretText? {
    guard let token = secrets.read(node, path, problems) else { return nil }
    let bytes = Array(token.reveal().utf8)
    guard bytes.count >= Self.leastToken else {
      problems.add(
        node.location, path,
        "is too short: at least \(Self.leastToken) characters, for example the output of `openssl rand -hex 32`")
      return nil
    }
    guard bytes.allSatisfy({ (0x21...0x7e).contains($0) }) else {
      problems.add(
        node.location, path, "must be printable ASCII without spaces, for example the output of `openssl rand -hex 32`")
      return nil
    }
    return token
  }

  /// Reads `hsts = "365d"`, or `false`.
  func readHSTS(_ reader: TableReader) -> Duration? {
    guard let node = reader.take("hsts") else { return nil }
    if case .flag(false) = node.value { return nil }
    if case .flag(true) = node.value {
      problems.add(node.location, "hsts", "must be a duration, such as \"365d\", or false")
      return nil
    }
    return Field.duration(node, "hsts", problems, atLeast: .zero)
  }
}
