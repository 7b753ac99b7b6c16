import MoongateCore
import MoongateSDK

/// Reads guarantees.lua.
struct GuaranteeReader {
  let catalog: ProviderCatalog
  /// The groups of accounts.lua; nil if it could not be read.
  let groups: Set<GroupName>?
  /// The apps of apps.lua; nil if it could not be read.
  let apps: AppTable?
  let problems: Problems

  private static let example = "guarantee \"administration takes two factors\" { route = \"/admin/**\", factors = 2 }"

  func read(_ node: LuaNode) -> [Guarantee] {
    guard case .table(let table) = node.value, table.isList else {
      problems.add(node.location, "", "guarantees takes a list: guarantees { \(Self.example), … }")
      return []
    }
    var guarantees: [Guarantee] = []
    var lines: [String: Int] = [:]
    for item in table.items {
      guard let guarantee = read(statement: item) else { continue }
      if let line = lines[guarantee.statement] {
        problems.add(
          item.location, "", "says \"\(guarantee.statement)\" again, first in line \(line): give each its own words")
      }
      lines[guarantee.statement] = item.location.line
      guarantees.append(guarantee)
    }
    return guarantees
  }

  private func read(statement node: LuaNode) -> Guarantee? {
    guard case .tagged("guarantee", let arguments) = node.value else {
      problems.add(node.location, "", "must be \(Self.example), not \(node.value.described)")
      return nil
    }
    guard arguments.count == 2, case .text(let statement) = arguments[0].value else {
      problems.add(
        node.location, "", "a guarantee needs a table after its statement, as in \(Self.example)")
      return nil
    }
    guard !statement.allSatisfy(\.isWhitespace), Field.text(arguments[0], "", problems) != nil else {
      if statement.allSatisfy(\.isWhitespace) {
        problems.add(node.location, "", "a guarantee needs a statement in words, as in \(Self.example)")
      }
      return nil
    }
    let before = problems.all.count
    guard let reader = TableReader(arguments[1], .guarantee, path: "", problems: problems) else { return nil }
    let body =
      reader.explicitValue("app") != nil
      ? ofApp(reader) : reader.explicitValue("route") == nil ? ofSessions(reader) : ofRoute(reader)
    guard problems.all.count == before, let (scope, demand) = body else { return nil }
    return Guarantee(statement: statement, scope: scope, demand: demand, location: node.location)
  }

  // MARK: sessions

  private func ofSessions(_ reader: TableReader) -> (Guarantee.Scope, SessionDemand)? {
    for name in ["passed", "factors", "within", "host", "group"] {
      guard let node = reader.explicitValue(name) else { continue }
      let instead =
        ["passed", "factors"].contains(name) ? "; for sessions as they begin, write session = { \(name) = … }" : ""
      problems.add(
        node.location, name, "applies only to a guarantee with `route`\(name == "host" ? "" : " or `app`")\(instead)")
    }
    guard let node = reader.explicitValue("session") else {
      if reader.explicitValue("account") != nil || reader.explicitValue("client") != nil || reader.names.isEmpty {
        problems.add(
          reader.location, "",
          "guarantees nothing: state what sessions must have passed, as in session = { passed = \"pin\" }, or name a route"
        )
      }
      return nil
    }
    let facts = readFacts(reader)
    guard let session = TableReader(node, .guaranteeSession, path: "session", problems: problems),
      let demand = readDemand(session), let facts
    else { return nil }
    return (.sessions(facts), demand)
  }

  private func readFacts(_ reader: TableReader) -> KnownFacts? {
    var facts: [BooleanFact: Bool] = [:]
    if let node = reader.explicitValue("account"),
      let account = TableReader(node, .guaranteeAccount, path: "account", problems: problems)
    {
      facts = readAccount(account)
    }
    if let node = reader.explicitValue("client"),
      let client = TableReader(node, .guaranteeClient, path: "client", problems: problems)
    {
      facts[.newDevice] = client.flag("new_device")
      facts[.networkChanged] = client.flag("network_changed")
    }
    guard let known = KnownFacts(facts) else {
      problems.add(
        (reader.explicitValue("account") ?? reader.explicitValue("client"))?.location ?? reader.location, "account",
        "these facts contradict each other: a true fact requires an existing account, and a verified address requires an address"
      )
      return nil
    }
    return known
  }

  private func readAccount(_ account: TableReader) -> [BooleanFact: Bool] {
    var facts: [BooleanFact: Bool] = [:]
    facts[.exists] = account.flag("exists")
    facts[.holds(.email)] = account.flag("has_email")
    facts[.verified(.email)] = account.flag("email_verified")
    facts[.verified(.phone)] = account.flag("phone_verified")
    if let hasPIN = account.flag("has_pin") {
      let pads = catalog.pads.filter(catalog.isConfigured).sorted()
      let location = account.explicitValue("has_pin")?.location ?? account.location
      if pads.count == 1 {
        facts[.keeps(pads[0])] = hasPIN
      } else {
        problems.add(
          location, account.path("has_pin"),
          pads.isEmpty
            ? "gateway.lua does not configure a PIN provider, so no account has a PIN"
            : "several providers store a PIN: name one of \(Suggestion.list(pads.map(\.rawValue))), as in factors = { \(pads[0]) = true }"
        )
      }
    }
    guard let node = account.explicitValue("factors"),
      let factors = TableReader(node, nil, path: account.path("factors"), problems: problems)
    else {
      return facts
    }
    for name in factors.names {
      guard let value = factors.flag(name) else { continue }
      guard
        let provider = provider(name, factors.path(name), at: factors.explicitValue(name)?.location ?? node.location)
      else {
        continue
      }
      if let said = facts[.keeps(provider)], said != value {
        problems.add(
          factors.explicitValue(name)?.location ?? node.location, factors.path(name), "contradicts `has_pin`")
      }
      facts[.keeps(provider)] = value
    }
    return facts
  }

  // MARK: routes

  private func ofRoute(_ reader: TableReader) -> (Guarantee.Scope, SessionDemand)? {
    refuse(["account", "client", "session"], beside: "route", reader)
    let patterns = RoutePatternReader(problems: problems)
    let pattern = reader.take("route").flatMap { patterns.readPattern($0, "route") }
    let host = patterns.readHost(reader)
    guard let demand = readGatedDemand(reader), let pattern else { return nil }
    return (.route(host: host, pattern), demand)
  }

  // MARK: apps

  private func ofApp(_ reader: TableReader) -> (Guarantee.Scope, SessionDemand)? {
    refuse(["route", "host", "account", "client", "session"], beside: "app", reader)
    let demand = readGatedDemand(reader)
    guard let node = reader.explicitValue("app"), let id = Field.text(node, "app", problems) else { return nil }
    if let problem = apps?.problem(ofSigningInTo: id) { problems.add(node.location, "app", problem) }
    return demand.map { (.app(id), $0) }
  }

  private func refuse(_ fields: [String], beside scope: String, _ reader: TableReader) {
    for name in fields {
      guard let node = reader.explicitValue(name) else { continue }
      let instead = name == "session" ? "; write `passed` or `factors` beside `\(scope)`" : ""
      problems.add(
        node.location, name,
        "a guarantee with `\(scope)` covers every session that the \(scope) accepts: remove this\(instead)")
    }
  }

  /// The demand on sessions that a route or an app accepts, which may name groups.
  private func readGatedDemand(_ reader: TableReader) -> SessionDemand? {
    let group = reader.explicitValue("group").flatMap {
      EntitlementReader(problems: problems).readRequirement($0, reader.path("group"), defined: groups)
    }
    var demand = readDemand(reader, isOfRoute: true)
    demand?.group = group
    return demand
  }

  // MARK: session requirements

  private func readDemand(_ reader: TableReader, isOfRoute: Bool = false) -> SessionDemand? {
    let passed = reader.explicitValue("passed").flatMap { readProviders($0, reader.path("passed")) }
    let factors = reader.whole("factors", in: 1...9)
    let within = reader.duration("within", atLeast: .seconds(1))
    if let node = reader.explicitValue("within"), reader.explicitValue("passed") == nil {
      problems.add(
        node.location, reader.path("within"),
        "requires `passed`: it is measured from the time when that provider was passed")
    }
    guard
      reader.explicitValue("passed") != nil || reader.explicitValue("factors") != nil
        || isOfRoute && reader.explicitValue("group") != nil
    else {
      let group = isOfRoute ? ", or group = \"ops\"" : ""
      problems.add(reader.location, reader.path, "guarantees nothing: write passed = \"pin\" or factors = 2\(group)")
      return nil
    }
    return SessionDemand(passed: passed ?? [], factors: factors, within: within)
  }

  /// Reads one provider, or `any_of { … }`.
  private func readProviders(_ node: LuaNode, _ path: String) -> [ProviderName]? {
    guard case .tagged("any_of", let arguments) = node.value else {
      guard case .text(let text) = node.value else {
        problems.add(
          node.location, path,
          "must name a provider in quotes, or several, as in any_of { \"pin\", \"totp\" }, not \(node.value.described)")
        return nil
      }
      return provider(text, path, at: node.location).map { [$0] }
    }
    guard case .table(let table)? = arguments.first?.value, table.isList, !table.isEmpty else {
      problems.add(node.location, path, "any_of takes a list of providers, as in any_of { \"pin\", \"totp\" }")
      return nil
    }
    return table.items.compactMap { item in
      Field.text(item, path, problems).flatMap { provider($0, path, at: item.location) }
    }
  }

  private func provider(_ text: String, _ path: String, at location: SourceLocation) -> ProviderName? {
    guard let name = catalog.known(text) else {
      problems.add(
        location, path, "unknown provider \"\(text)\"\(Suggestion.phrase(for: text, among: catalog.names))")
      return nil
    }
    guard catalog.isConfigured(name) else {
      problems.add(location, path, "gateway.lua does not configure the provider `\(text)`, so no session could pass it")
      return nil
    }
    return name
  }
}
