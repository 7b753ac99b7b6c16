import MoongateCore

/// Reads `geo` of gateway.lua, and opens its databases.
struct GeoReader {
  /// The configuration folder, the base of relative paths.
  let folder: String
  let problems: Problems

  /// Adds the databases to the settings. Those that cannot be used are reported.
  func read(_ reader: TableReader, into settings: inout GatewaySettings) {
    guard let node = reader.explicitValue("geo"),
      let table = TableReader(node, .geo, path: "geo", problems: problems)
    else { return }
    let countries = file(table, "database")
    let systems = file(table, "asn")
    if table.explicitValue("database") == nil, table.explicitValue("asn") == nil {
      problems.add(node.location, "geo", "names no database: set `database`, `asn` or both")
    }
    settings.geo = GeoSettings(countries: countries?.path, systems: systems?.path)
    settings.places = GeoDatabases(
      countries: countries.flatMap { open($0, table.path("database"), .countries) },
      systems: systems.flatMap { open($0, table.path("asn"), .systems) })
  }

  private func file(_ table: TableReader, _ name: String) -> (path: String, text: String, location: SourceLocation)? {
    guard let node = table.explicitValue(name), let text = Field.text(node, table.path(name), problems) else {
      return nil
    }
    return (text.hasPrefix("/") ? text : "\(folder)/\(text)", text, node.location)
  }

  private func open(
    _ file: (path: String, text: String, location: SourceLocation), _ field: String, _ contents: GeoDatabase.Contents
  ) -> GeoDatabase? {
    do throws(GeoDatabase.Problem) { return try GeoDatabase(file.path, of: contents) } catch {
      problems.add(file.location, field, "\(file.text): \(error.message)")
      return nil
    }
  }
}
