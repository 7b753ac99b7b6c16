import MoongateCore
import MoongateSDK

/// Reads apps.lua.
struct AppReader {
  /// `public_url`; nil if gateway.lua could not be read.
  let own: PublicURL?
  let problems: Problems

  private static let example = "mobile = app { public = true, redirect_uris = { \"com.example.app:/in\" } }"

  func read(_ node: LuaNode) -> AppTable {
    guard let reader = TableReader(node, nil, path: "", problems: problems) else { return .none }
    var apps: [App] = []
    for id in reader.names {
      guard let entry = reader.explicitValue(id), let app = read(entry, id: id) else { continue }
      reportShared(app, with: apps)
      apps.append(app)
    }
    return AppTable(apps, own: own)
  }

  private func read(_ node: LuaNode, id: String) -> App? {
    guard case .tagged("app", let arguments) = node.value, arguments.count == 1 else {
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
    if let flag = reader.flag("public"), !flag {
      problems.add(
        reader.take("public")?.location ?? reader.location, reader.path("public"),
        "must be true: this version knows apps without a secret only")
    }
    let uris = readURIs(reader)
    let consent = reader.choice("consent", App.Consent.self)
    guard problems.all.count == before, let consent else { return nil }
    var locations = ["": node.location]
    for field in reader.names { locations[field] = reader.explicitValue(field)?.location }
    return App(id: id, name: name, redirectURIs: uris, consent: consent, locations: locations)
  }

  private func readName(_ node: LuaNode, _ path: String) -> String? {
    guard let name = Field.text(node, path, problems) else { return nil }
    if name.count <= 100, name.contains(where: { !$0.isWhitespace }), !name.contains("\n") { return name }
    problems.add(node.location, path, "must be a name that users recognise, in one line of at most 100 characters")
    return nil
  }

  private func readURIs(_ reader: TableReader) -> [RedirectURI] {
    let path = reader.path("redirect_uris")
    guard let node = reader.take("redirect_uris"), let texts = Field.texts(node, path, problems) else { return [] }
    if texts.isEmpty {
      problems.add(node.location, path, "must list at least one address, such as \"https://app.example.com/in\"")
    }
    return texts.enumerated().compactMap { index, item in
      let path = "\(path)[\(index + 1)]"
      do throws(RedirectURIProblem) {
        let uri = try RedirectURI(item.text)
        // Attack: the gateway's own pages and the services on its origin are no app. Their request lines are seen by
        // others.
        guard own == nil || uri.origin != own else {
          problems.add(
            item.node.location, path,
            "\"\(item.text)\" is on `public_url`, the gateway's own origin: write an address of the app")
          return nil
        }
        return uri
      } catch {
        problems.add(item.node.location, path, "\"\(item.text)\" \(error.message)")
        return nil
      }
    }
  }

  /// Reports redirect URIs that an earlier app has too: a code that is sent there has no certain owner.
  private func reportShared(_ app: App, with earlier: [App]) {
    for (index, uri) in app.redirectURIs.enumerated() {
      guard let other = earlier.first(where: { $0.redirectURIs.contains { $0.overlaps(uri) } }) else { continue }
      problems.add(
        app.locations["redirect_uris"] ?? SourceLocation(file: "apps.lua", line: 0),
        "\(app.id).redirect_uris[\(index + 1)]",
        "\"\(uri.text)\" is also an address of `\(other.id)`: give each app addresses of its own")
    }
  }
}
