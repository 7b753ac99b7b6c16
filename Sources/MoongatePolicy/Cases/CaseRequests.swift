import MoongateCore
import MoongateSDK

// `request { … }`: a page behind the gateway. routes.lua decides about it as in production.

extension TableShape {
  static let caseRequest = TableShape(
    name: "CaseRequest",
    summary: "A request for a page behind the gateway, with the session of the last completed flow.",
    entries: [
      .optional("method", "string", "the method in upper case", .text("GET")),
      .optional("host", "string", "the host, such as \"wallet.example.com\"; by default that of public_url"),
      .required("path", "string", "the path, such as \"/pay/1\""),
      .optional("query", "string", "the query string, without the ?", .text("")),
    ])
}

extension CaseReader {
  func request(_ node: LuaNode) -> RequestFacts? {
    guard let reader = TableReader(node, .caseRequest, path: "request", problems: problems) else { return nil }
    let method = reader.text("method")
    let path = reader.text("path")
    let query = reader.text("query")
    var host = host
    if let field = reader.take("host"), let text = Field.text(field, "request.host", problems) {
      host = HostName(text)?.name
      if host == nil {
        problems.add(field.location, "request.host", "\"\(text)\" is not a host, such as \"wallet.example.com\"")
      }
    }
    if let method, method.wholeMatch(of: /[A-Z][A-Z\-]{0,31}/) == nil {
      problems.add(
        reader.explicitValue("method")?.location ?? node.location, "request.method",
        "\"\(method)\" is not a method in upper case, such as \"GET\"")
    }
    if let path, !path.hasPrefix("/") || path.contains("?") {
      problems.add(
        reader.explicitValue("path")?.location ?? node.location, "request.path",
        "\"\(path)\" is not a path: it must begin with /, and the query string goes in `query`")
    }
    guard let method, let path, let query else { return nil }
    return RequestFacts(method: method, host: host ?? "", path: path, query: query)
  }
}

extension CaseRun {
  /// - Returns: the outcome in words.
  mutating func ask(_ request: RequestFacts, _ act: PolicyCase.Act) async throws -> String {
    try await makeAccount(act)
    switch try await gateway.request(request, session: session, token: token.map { ($0.name, $0.groups) }, by: client) {
    case .success(let route):
      answer = .passed(route)
      let isByNetwork = !route.isOpen && route.isOpen(to: address, at: request.host, in: generation.gateway)
      return outcomeText + (isByNetwork ? ", which needs no session from \(address)" : "")
    case .failure(let refusal):
      answer = .refusal(refusal)
      return outcomeText
    }
  }
}

extension RequestFacts {
  /// The request in Lua syntax.
  var asWritten: String {
    let fields = [("method", method == "GET" ? "" : method), ("host", host), ("path", path), ("query", query)]
    return "request { \(fields.filter { !$0.1.isEmpty }.map { "\($0.0) = \"\($0.1)\"" }.joined(separator: ", ")) }"
  }
}
