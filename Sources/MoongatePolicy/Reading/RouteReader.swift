import Foundation
import MoongateCore
import MoongateSDK

/// Reads routes.lua.
struct RouteReader {
  let catalog: ProviderCatalog
  /// The flows; nil if they could not be read. Unknown flows are then not reported.
  let flows: Set<String>?
  /// Nil if gateway.lua could not be read.
  let gateway: GatewaySettings?
  /// The groups of accounts.lua; nil if it could not be read.
  let groups: Set<GroupName>?
  /// The claims of accounts.lua; nil if it could not be read.
  let claims: Set<String>?
  /// The apps; nil if apps.lua could not be read.
  let apps: AppTable?
  let secrets: SecretReader
  /// The templates in folders below `pages/`.
  let errorPages: [PageFile]
  let problems: Problems

  func read(_ node: LuaNode, functions: inout FunctionTable) -> [Route] {
    guard case .table(let table) = node.value, table.isList else {
      problems.add(
        node.location, "", "routes takes a list: routes { { path = \"/**\", to = \"http://127.0.0.1:3000\" }, … }")
      return []
    }
    var routes: [Route] = []
    for (index, item) in table.items.enumerated() {
      if let route = readRoute(item, "routes[\(index + 1)]", &functions) { routes.append(route) }
    }
    for (index, route) in routes.enumerated() {
      if let earlier = RouteShadow.earliest(over: route, among: routes[..<index]) {
        problems.add(route.location, "", "this route can never match: \(earlier) matches all its requests first")
      }
    }
    return routes
  }

  private func readRoute(_ node: LuaNode, _ path: String, _ functions: inout FunctionTable) -> Route? {
    let before = problems.all.count
    guard let reader = TableReader(node, .route, path: path, problems: problems) else { return nil }
    let patterns = RoutePatternReader(problems: problems)
    let host = patterns.readHost(reader)
    let pattern = reader.take("path").flatMap { patterns.readPattern($0, reader.path("path")) }
    let methods = readMethods(reader)
    let (upstreams, base) = UpstreamReader(gateway: gateway, secrets: secrets, problems: problems).read(reader)
    let allowed = OpenNetworksReader(gateway: gateway, problems: problems).read(reader)
    let flow = readFlow(reader)
    let requirements = RequirementReader(catalog: catalog, groups: self.groups, problems: problems)
    let (requirement, groups) = requirements.read(reader)
    let tokens = RouteTokensReader(problems: problems).read(reader)
    let decide = reader.function("decide").map { function in
      let name = FunctionName("\(path).decide")
      functions.add(name, function, for: .route)
      return name
    }
    let timeout = reader.duration("timeout")
    let standardRate = gateway.map(\.connectionLimits.bodyRate) ?? .standard
    // Empty values stand for those that are missing or invalid, so that the other fields are read all the same.
    var route = Route(
      host: host, path: pattern ?? PathPattern(text: "", segments: []), methods: methods, upstreams: upstreams,
      isOpen: allowed.isOpen, flow: flow ?? "", requirement: requirement, decide: decide, timeout: timeout ?? .zero,
      allowsUpgrade: reader.flag("websocket") ?? false, headers: readHeaders(reader), bodyLimit: reader.size("body"),
      bodyRate: BodyRateReader(problems: problems).read(reader, standard: standardRate), groups: groups,
      tokens: tokens, allowsServiceWorker: reader.flag("service_worker") ?? false, location: node.location)
    route.openNetworks = allowed.networks
    route.rewrite.base = base
    readOptionalFields(reader, into: &route)
    judge(reader, route)
    guard problems.all.count == before, pattern != nil, timeout != nil, flow != nil else { return nil }
    return route
  }

  private func readMethods(_ reader: TableReader) -> Set<String>? {
    guard let node = reader.take("methods"), let texts = Field.texts(node, reader.path("methods"), problems)
    else { return nil }
    if texts.isEmpty {
      problems.add(
        node.location, reader.path("methods"), "an empty list matches no method; omit `methods` to match all")
    }
    for item in texts where item.text.wholeMatch(of: /[A-Z][A-Z\-]{0,31}/) == nil {
      problems.add(
        item.node.location, reader.path("methods"),
        "\"\(item.text)\" is not a method in upper case\(item.text.uppercased() != item.text ? "; did you mean `\(item.text.uppercased())`?" : "")"
      )
    }
    for item in texts where ["CONNECT", "TRACE"].contains(item.text) {
      problems.add(item.node.location, reader.path("methods"), "\(item.text) is never passed on")
    }
    return Set(texts.map(\.text))
  }

  private func readFlow(_ reader: TableReader) -> String? {
    guard let node = reader.take("flow"), let text = Field.text(node, reader.path("flow"), problems) else { return nil }
    // Only an explicit name is checked here. A missing default flow is reported once for all routes.
    if let flows, !flows.contains(text), reader.explicitValue("flow") != nil {
      problems.add(
        node.location, reader.path("flow"), "there is no flows/\(text).lua\(Suggestion.phrase(for: text, among: flows))"
      )
    }
    return text
  }

  private func readHeaders(_ reader: TableReader) -> [(name: String, value: String)] {
    guard let node = reader.take("headers"),
      let table = TableReader(node, nil, path: reader.path("headers"), problems: problems)
    else { return [] }
    var headers: [(name: String, value: String)] = []
    for name in table.names {
      guard let node = table.take(name), let value = Field.text(node, table.path(name), problems) else { continue }
      guard HeaderRules.isName(name) else {
        problems.add(node.location, table.path, "\"\(name)\" is not a valid header name")
        continue
      }
      guard !HeaderRules.isReserved(name) else {
        problems.add(node.location, table.path(name), "the gateway itself sets or removes this header")
        continue
      }
      guard HeaderRules.isValue(value) else {
        problems.add(node.location, table.path(name), HeaderRules.valueRule)
        continue
      }
      headers.append((name, value))
    }
    return headers
  }
}
