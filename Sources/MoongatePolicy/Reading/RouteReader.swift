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
    let host = readHost(reader)
    let pattern = reader.take("path").flatMap { readPattern($0, reader.path("path")) }
    let methods = readMethods(reader)
    let upstreams = readUpstreams(reader)
    let isOpen = reader.flag("allow") ?? false
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
    let allowsUpgrade = reader.flag("websocket") ?? false
    let allowsServiceWorker = reader.flag("service_worker") ?? false
    let headers = readHeaders(reader)
    let bodyLimit = reader.size("body")
    let bodyRate = BodyRateReader(problems: problems).read(
      reader, standard: gateway.map(\.connectionLimits.bodyRate) ?? .standard)
    if isOpen {
      for name in ["flow", "require", "decide", "tokens"] {
        if let node = reader.explicitValue(name) {
          problems.add(
            node.location, reader.path(name),
            "a route with allow = true is open to all requests: remove one of the two")
        }
      }
    }
    if let tokens { warnOfUnmetRequirement(tokens, requirement, reader) }
    if let host, !isOpen, tokens == nil, let gateway, !Self.canHaveSession(host, gateway),
      let node = reader.explicitValue("host")
    {
      problems.add(
        node.location, reader.path("host"),
        "no session can reach \(host): it is neither public_url's host (\(gateway.publicURL.host)) nor under \(Self.sessionDomains(gateway))"
      )
    }
    guard problems.all.count == before, let pattern, let timeout, let flow else { return nil }
    return Route(
      host: host, path: pattern, methods: methods, upstreams: upstreams, isOpen: isOpen, flow: flow,
      requirement: requirement, decide: decide,
      timeout: timeout, allowsUpgrade: allowsUpgrade, headers: headers, bodyLimit: bodyLimit, bodyRate: bodyRate,
      groups: groups, tokens: tokens, allowsServiceWorker: allowsServiceWorker,
      location: node.location)
  }

  /// Tokens never pass a step, and a service token has no email address.
  private func warnOfUnmetRequirement(_ tokens: RouteTokens, _ requirement: Requirement?, _ reader: TableReader) {
    guard let node = reader.explicitValue("tokens") else { return }
    switch requirement {
    case .passed(let provider, _):
      problems.warn(
        node.location, reader.path("tokens"),
        "no token can be accepted: tokens have not passed `\(provider)`, which `require` demands. Remove one of the two"
      )
    case .emailVerified where !tokens.takesPersonal:
      problems.warn(
        node.location, reader.path("tokens"),
        "no token can be accepted: a service token has no email address, which `require` demands. Remove one of the two"
      )
    default: break
    }
  }

  private static func canHaveSession(_ host: String, _ gateway: GatewaySettings) -> Bool {
    if host == gateway.publicURL.host { return true }
    return (gateway.domains + (gateway.cookieDomain.map { [$0] } ?? [])).contains { DomainReader.contains($0, host) }
  }

  /// The settings that define where sessions are valid, for problems.
  private static func sessionDomains(_ gateway: GatewaySettings) -> String {
    if !gateway.domains.isEmpty { return "one of domains (\(gateway.domains.joined(separator: ", ")))" }
    return "cookie_domain\(gateway.cookieDomain.map { " (\($0))" } ?? "")"
  }

  /// Reads an exact host name.
  func readHost(_ reader: TableReader) -> String? {
    guard let node = reader.take("host"), let text = Field.text(node, reader.path("host"), problems) else {
      return nil
    }
    guard let host = HostName(text), host.port == nil, host.name == text else {
      let meant = HostName(text).map { "; did you mean `\($0.name)`?" } ?? ", such as \"wallet.example.com\""
      problems.add(
        node.location, reader.path("host"),
        "\"\(text)\" is not a host name in lower case, without port and trailing dot\(meant)")
      return nil
    }
    return text
  }

  /// Reads a path pattern.
  func readPattern(_ node: LuaNode, _ path: String) -> PathPattern? {
    guard let text = Field.text(node, path, problems) else { return nil }
    func refuse(_ why: String) -> PathPattern? {
      problems.add(node.location, path, "\"\(text)\" \(why)")
      return nil
    }
    guard text.hasPrefix("/") else { return refuse("must begin with /") }
    guard !text.contains("?"), !text.contains("#"), !text.contains(";"), !text.contains("\n") else {
      return refuse("must not contain ?, #, ; or a line break: patterns match only the path")
    }
    // Requests are decoded once before they are matched.
    if let decoded = text.removingPercentEncoding, decoded != text {
      return refuse("can match no path: patterns match decoded paths; write \"\(decoded)\"")
    }
    guard !text.contains("\\") else { return refuse("can match no path: requests with a backslash are refused") }
    let parts = text.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
    var segments: [PathPattern.Segment] = []
    for (index, part) in parts.enumerated() {
      if part == "**" {
        segments.append(.anySegments)
      } else if part.contains("**") {
        return refuse("has ** within a segment; ** stands alone between slashes")
      } else if part == "." || part == ".." || (part.isEmpty && index < parts.count - 1) {
        return refuse("can match no path: requests with `//`, `.` or `..` are refused before routing")
      } else {
        segments.append(.glob(Array(part.utf8)))
      }
    }
    return PathPattern(text: text, segments: segments)
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

  private func readUpstreams(_ reader: TableReader) -> [Upstream] {
    guard let node = reader.take("to") else { return [] }
    let path = reader.path("to")
    var texts: [(text: String, node: LuaNode)] = []
    if case .table(let table) = node.value {
      if table.isEmpty { problems.add(node.location, path, "must name at least one upstream") }
      texts = Field.texts(node, path, problems) ?? []
    } else if let text = Field.text(node, path, problems) {
      texts = [(text, node)]
    }
    return texts.compactMap { item in
      guard let url = PublicURL(parsing: item.text) else {
        problems.add(
          item.node.location, path,
          "\"\(item.text)\" is not a valid upstream, such as \"http://127.0.0.1:3000\": scheme, host and port, without a path"
        )
        return nil
      }
      let upstream = Upstream(isSecure: url.isSecure, host: url.host, port: url.port)
      warnOfOwnAddress(upstream, item.text, item.node, path)
      return upstream
    }
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

  /// Headers that belong to the connection, or that the gateway writes for each request.
  private static let framing: [StaticString] = HopByHopHeaders.names + ["content-length", "host", "cookie", "expect"]

  private func readHeaders(_ reader: TableReader) -> [(name: String, value: String)] {
    guard let node = reader.take("headers"),
      let table = TableReader(node, nil, path: reader.path("headers"), problems: problems)
    else { return [] }
    var headers: [(name: String, value: String)] = []
    for name in table.names {
      guard let node = table.take(name), let value = Field.text(node, table.path(name), problems) else { continue }
      guard name.wholeMatch(of: /[A-Za-z0-9!#$%&'*+.^_`|~\-]{1,100}/) != nil else {
        problems.add(node.location, table.path, "\"\(name)\" is not a valid header name")
        continue
      }
      guard !ReservedHeaders.contains(name), !Self.framing.contains(where: { ReservedHeaders.equal($0, name) }) else {
        problems.add(node.location, table.path(name), "the gateway itself sets or removes this header")
        continue
      }
      guard value.utf8.allSatisfy({ (32...126).contains($0) }), value.utf8.first != 32, value.utf8.last != 32 else {
        problems.add(node.location, table.path(name), "must be printable ASCII without space at its ends")
        continue
      }
      headers.append((name, value))
    }
    return headers
  }
}
