import MoongateCore
import MoongateSDK

/// Reads `require` of a route or an app.
struct RequirementReader {
  let catalog: ProviderCatalog
  /// The groups of accounts.lua; nil if it could not be read.
  let groups: Set<GroupName>?
  let problems: Problems

  /// `require` of a route.
  func read(_ reader: TableReader) -> (Requirement?, GroupRequirement?) {
    guard let table = table(of: reader, .requirement) else { return (nil, nil) }
    let (step, group) = (readStep(table), readGroup(table))
    if step == nil, group == nil { refuseEmpty(table, naming: ["group", "passed"]) }
    return (step, group)
  }

  /// `require` of an app, which can also name a number of factors.
  func readOfApp(_ reader: TableReader) -> AppRequirement {
    guard let table = table(of: reader, .appRequirement) else { return AppRequirement() }
    let (step, group) = (readStep(table), readGroup(table))
    let factors = table.whole("factors", in: 1...9)
    if step == nil, group == nil, factors == nil { refuseEmpty(table, naming: ["group", "passed", "factors"]) }
    return AppRequirement(groups: group, steps: [step].compactMap(\.self), factors: factors)
  }

  private func table(of reader: TableReader, _ shape: TableShape) -> TableReader? {
    reader.take("require").flatMap { TableReader($0, shape, path: reader.path("require"), problems: problems) }
  }

  private func readGroup(_ table: TableReader) -> GroupRequirement? {
    table.take("group").flatMap {
      EntitlementReader(problems: problems).readRequirement($0, table.path("group"), defined: groups)
    }
  }

  /// Reports a table without a requirement, unless one of these fields is there and was already reported.
  private func refuseEmpty(_ table: TableReader, naming fields: [String]) {
    guard fields.allSatisfy({ table.explicitValue($0) == nil }) else { return }
    let factors = fields.contains("factors") ? ", { factors = 2 }" : ""
    problems.add(
      table.location, table.path,
      "has no requirement; write { group = \"ops\" }, { passed = \"pin\", within = \"5m\" }\(factors) or { email_verified = true }"
    )
  }

  private func readStep(_ table: TableReader) -> Requirement? {
    let passed = table.text("passed")
    let within = table.duration("within")
    let verified = table.flag("email_verified")
    if let passed, let node = table.explicitValue("passed") {
      guard verified == nil else {
        problems.add(table.location, table.path, "sets both `passed` and `email_verified`: choose one of them")
        return nil
      }
      guard let name = catalog.known(passed) else {
        problems.add(
          node.location, table.path("passed"),
          "unknown provider \"\(passed)\"\(Suggestion.phrase(for: passed, among: catalog.names))")
        return nil
      }
      if !catalog.isConfigured(name) {
        problems.add(
          node.location, table.path("passed"),
          "gateway.lua does not configure the provider `\(passed)`, so no session could pass")
      }
      return .passed(name, within: within)
    }
    // A `passed` that cannot be read is already reported.
    if let node = table.explicitValue("within"), within != nil, table.explicitValue("passed") == nil {
      problems.add(
        node.location, table.path("within"),
        "requires `passed`: it is measured from the time when that provider was passed")
    }
    return verified == true ? .emailVerified : nil
  }
}
