import MoongateCore
import MoongateSDK

// `request { … }`: a page behind the gateway, judged by routes.lua as the data path judges it.

extension TableShape {
  static let caseRequest = TableShape(
    name: "CaseRequest",
    summary: "A request for a page behind the gateway, signed in as by the flow that was completed last.",
    entries: [
      .optional("method", "string", "in capitals", .text("GET")),
      .optional("host", "string", "a host, such as \"wallet.example.com\"; public_url's where it is left out"),
      .required("path", "string", "what is asked for, such as \"/pay/1\""),
      .optional("query", "string", "what stands behind ?", .text("")),
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
        problems.add(field.location, "request.host", "\"\(text)\" is no host, such as \"wallet.example.com\"")
      }
    }
    if let method, method.wholeMatch(of: /[A-Z][A-Z\-]{0,31}/) == nil {
      problems.add(
        reader.said("method")?.location ?? node.location, "request.method",
        "\"\(method)\" is no method in capitals, such as \"GET\"")
    }
    if let path, !path.hasPrefix("/") || path.contains("?") {
      problems.add(
        reader.said("path")?.location ?? node.location, "request.path",
        "\"\(path)\" is no path: it begins with /, and what stands behind ? is `query`")
    }
    guard let method, let path, let query else { return nil }
    return RequestFacts(method: method, host: host ?? "", path: path, query: query)
  }
}

extension CaseRun {
  /// - Returns: what came of it, in words.
  mutating func ask(_ request: RequestFacts) async throws -> String {
    switch try await gateway.request(request, session: session, token: token.map { ($0.name, $0.groups) }, by: client) {
    case .success(let route): answer = .passed(route)
    case .failure(let refusal): answer = .refusal(refusal)
    }
    return told
  }
}

extension RequestFacts {
  /// As a file writes it.
  var asWritten: String {
    let fields = [("method", method == "GET" ? "" : method), ("host", host), ("path", path), ("query", query)]
    return "request { \(fields.filter { !$0.1.isEmpty }.map { "\($0.0) = \"\($0.1)\"" }.joined(separator: ", ")) }"
  }
}

extension Upstream {
  /// As routes.lua writes it.
  var asWritten: String { "\(isSecure ? "https" : "http")://\(host):\(port)" }
}
