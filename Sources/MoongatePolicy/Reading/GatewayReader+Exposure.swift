import MoongateCore

// What of gateway.lua decides who reaches the operator's listener, and by what browsers reach the gateway.
extension GatewayReader {
  /// A token shorter than this can be guessed over a network, given time.
  private static let leastToken = 16

  /// `admin = "127.0.0.1:9901"`, or `{ address = "…", token = env "…" }`.
  ///
  /// Attack: `admin = "0.0.0.0:9901"`. Whoever reaches that port reads every code of the outbox, unlocks accounts and deletes them.
  func readAdmin(_ reader: TableReader) -> (address: ListenAddress, token: SecretText?)? {
    guard let node = reader.take("admin") else { return nil }
    guard case .table = node.value else {
      guard let address = address(reader, "admin") else { return nil }
      return judge(address, token: nil, at: node)
    }
    guard let table = TableReader(node, .admin, path: "admin", problems: problems) else { return nil }
    let before = problems.all.count
    let address = address(table, "address")
    let token = table.take("token").flatMap { readToken($0, table.path("token")) }
    guard problems.all.count == before, let address else { return nil }
    return judge(address, token: token, at: table.said("address") ?? node)
  }

  private func judge(_ address: ListenAddress, token: SecretText?, at node: LuaNode) -> (address: ListenAddress, token: SecretText?) {
    if address.isLoopback || token != nil { return (address, token) }
    problems.addUnsafe(
      node.location, "admin",
      "other machines reach \(address), and the admin listener does whatever it is asked: listen on 127.0.0.1, or ask for a token, as in "
        + "{ address = \"\(address)\", token = env \"MOONGATE_ADMIN_TOKEN\" }")
    return (address, token)
  }

  private func readToken(_ node: LuaNode, _ path: String) -> SecretText? {
    guard let token = secrets.read(node, path, problems) else { return nil }
    let bytes = Array(token.reveal().utf8)
    guard bytes.count >= Self.leastToken else {
      problems.add(node.location, path, "is too short: at least \(Self.leastToken) characters, such as `openssl rand -hex 32` prints")
      return nil
    }
    guard bytes.allSatisfy({ (0x21...0x7e).contains($0) }) else {
      problems.add(node.location, path, "must be printable ASCII without spaces, such as `openssl rand -hex 32` prints")
      return nil
    }
    return token
  }

  /// `hsts = "365d"`, or `false`.
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
