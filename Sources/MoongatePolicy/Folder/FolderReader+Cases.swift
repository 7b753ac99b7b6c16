import MoongateCore
import MoongateSDK

extension FolderReader {
  /// Reads the cases of the folder's `tests/`, and the cases that configured providers ship.
  mutating func readCases() -> (own: [PolicyCase], shipped: [PolicyCase]) {
    // Nil if guarantees.lua exists but could not be read.
    let statements = guarantees.isEmpty && files.file("guarantees.lua") != nil ? nil : guarantees.map(\.statement)
    let selection = CaseSelection(files: files, catalog: catalog, flows: flows, policies: policies)
    var cases: [PolicyCase] = []
    let missing = MissingFlows()
    for file in files.files(in: "tests") {
      if let node = lua.read(file, constructor: "tests", example: "tests { … }")?.first {
        let reader = CaseReader(
          flows: flowNames, absent: selection.absentFlows, host: gateway?.publicURL.host,
          groups: groups == nil ? nil : accounts.groups, statements: statements, apps: readableApps, missing: missing,
          providers: catalog, problems: problems)
        cases += selection.playable(reader.read(node), problems)
      }
    }
    missing.report(among: flowNames, to: problems)
    return (cases, readProviderCases(selection))
  }

  /// The cases that configured providers ship, except for providers that have a file of cases in the folder.
  private mutating func readProviderCases(_ selection: CaseSelection) -> [PolicyCase] {
    let host = gateway?.publicURL.host
    let own = Set(files.files(in: "tests").map(\.title))
    var cases: [PolicyCase] = []
    for descriptor in catalog.descriptors
    where catalog.isConfigured(descriptor.name) && !own.contains(descriptor.name.rawValue) {
      guard let source = descriptor.cases else { continue }
      let file = ConfigurationFiles.File(source)
      guard let node = lua.read(file, constructor: "tests", example: "tests { … }")?.first else { continue }
      let reader = CaseReader(flows: [], origin: descriptor.name, host: host, providers: catalog, problems: problems)
      cases += reader.read(node).filter { selection.plays($0, comingWith: descriptor) }
    }
    return cases
  }
}
