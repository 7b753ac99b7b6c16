import MoongateCore
import MoongateSDK

/// The admin listener of a configuration folder, for commands that ask the running gateway.
package struct AdminListener: Sendable {
  package let address: ListenAddress
  /// Empty if the listener requires no authentication.
  package let tokens: [AdminToken]
}

extension ConfigurationLoader {
  /// Reads `admin` of gateway.lua and nothing else, so that the running gateway can be reached while other settings or
  /// files have problems. Starts no programs.
  /// - Returns: the problems of `admin`, or those that hide it.
  package func adminListener(folder: String) -> Result<AdminListener, RefusedConfiguration> {
    let problems = Problems()
    if let listener = adminListener(folder: folder, problems) { return .success(listener) }
    return .failure(
      RefusedConfiguration(id: nil, problems: Problems.sorted(problems.all), isFolderMissing: false))
  }

  private func adminListener(folder: String, _ problems: Problems) -> AdminListener? {
    guard let file = gatewayFile(folder, problems) else { return nil }
    let catalog = ProviderCatalog(compiledIn: providers.map(\.descriptor))
    // Kept apart, because problems of other settings do not matter here.
    let syntax = Problems()
    var lua = LuaFiles(problems: syntax)
    lua.share(ConfigurationFiles(folder: folder).shared(syntax))
    guard
      let node = lua.read(file, constructor: "gateway", example: "gateway { … }", types: catalog.types)?.first,
      let table = TableReader(node, .gateway, path: "", problems: syntax)
    else {
      problems.add(syntax.all)
      return nil
    }
    // Attack on ourselves: the address is misspelled or set twice, and the default belongs to another gateway.
    let isSet = table.explicitValue("admin") != nil
    let hiding = syntax.all.filter { problem in
      // Also in a shared file, where the address may be set twice.
      if isSet { return ["admin", "address", "token", "tokens"].contains(problem.path) }
      // A broken shared file that gateway.lua includes has hidden all of gateway.lua above.
      guard problem.location.file == file.name else { return false }
      // A field that is set twice has no path.
      return problem.path.isEmpty || Suggestion.nearest(to: problem.path, among: ["admin"]) != nil
    }
    guard hiding.isEmpty else {
      problems.add(hiding)
      return nil
    }
    let secrets = SecretReader(folder: folder, environment: environment)
    let reader = GatewayReader(folder: folder, catalog: catalog, secrets: secrets, problems: problems)
    guard let admin = reader.readAdmin(table), problems.all.isEmpty else { return nil }
    return AdminListener(
      address: admin.address, tokens: AdminToken.all(unnamed: admin.token, named: admin.tokens))
  }

  private func gatewayFile(_ folder: String, _ problems: Problems) -> ConfigurationFiles.File? {
    switch ConfigurationFiles.read("\(folder)/gateway.lua") {
    case .success(let bytes): return ConfigurationFiles.File(name: "gateway.lua", bytes: bytes)
    case .failure(let failure):
      let location = SourceLocation(file: "gateway.lua", line: 0)
      problems.add(location, "", failure.isAbsence ? "is missing" : failure.message)
      return nil
    }
  }
}
