import Hummingbird
import MoongateCore

/// `GET /api/auth/openapi.json`: OpenAPI 3.1 of the API, written from the endpoints themselves.
struct OpenAPICall: Sendable {
  private let document: [UInt8]

  /// - Parameters:
  ///   - endpoints: all of the gateway's own; those without a description are none of the API.
  ///   - regions: the countries that may be named, in two letters.
  ///   - events: the names of client events.
  init(describing endpoints: [Endpoint], regions: [String], events: [String]) {
    let lists: KeyValuePairs = ["Region": regions, "ClientEventName": events]
    document = Self.document(of: endpoints + [Self.endpoint { _ throws(Refusal) in .nothing }], lists).bytes + [UInt8(ascii: "\n")]
  }

  var endpoints: [Endpoint] {
    [Self.endpoint { [document] _ throws(Refusal) in .plain(.ok, type: "application/json", document) }]
  }

  private static func endpoint(_ handle: @escaping @Sendable (Exchange) async throws(Refusal) -> Response) -> Endpoint {
    Endpoint(.call, .get, "/api/auth/openapi.json", .openAPI, servesAllDomains: true, handle: handle)
  }

  /// - Parameter lists: schemas of a word among several, by name.
  private static func document(of endpoints: [Endpoint], _ lists: KeyValuePairs<String, [String]>) -> JSONValue {
    var paths: [(path: String, operations: [JSONMember])] = []
    for endpoint in endpoints {
      guard let operation = endpoint.operation else { continue }
      let path = endpoint.path(naming: operation.path)
      let member = JSONMember(name: endpoint.method.rawValue.lowercased(), value: describe(operation))
      if let index = paths.firstIndex(where: { $0.path == path }) { paths[index].operations.append(member) } else { paths.append((path, [member])) }
    }
    return .members([
      "openapi": .text("3.1.0"),
      "info": .members([
        "title": .text("Moongate"), "version": .text("1"),
        "description": .text(
          "Sign-in by steps. Every refusal is application/problem+json (RFC 9457) with a code; its decision_id names it to the operator."),
      ]),
      "tags": .list(Operation.Tag.allCases.map { .members(["name": .text($0.rawValue)]) }),
      "paths": .object(paths.map { JSONMember(name: $0.path, value: .object($0.operations)) }),
      "components": .members([
        "securitySchemes": .members(["session": .members(["type": .text("http"), "scheme": .text("bearer")])]),
        "schemas": .object(
          (Array(Components.schemas) + Array(Components.export) + Array(Components.tokens)).map { JSONMember(name: $0.key, value: $0.value) }
            + lists.map { JSONMember(name: $0.key, value: Schema.oneOf($0.value)) }),
      ]),
    ])
  }

  private static func describe(_ operation: Operation) -> JSONValue {
    var members: [JSONMember] = [
      JSONMember(name: "operationId", value: .text(operation.id)), JSONMember(name: "summary", value: .text(operation.summary)),
      JSONMember(name: "tags", value: .list([.text(operation.tag.rawValue)])),
    ]
    let parameters =
      operation.path.map { parameter($0, in: "path", isRequired: true, nil, Schema.id) }
      + operation.query.map { parameter($0.name, in: "query", isRequired: $0.isRequired, $0.help, $0.schema) }
    if !parameters.isEmpty { members.append(JSONMember(name: "parameters", value: .list(parameters))) }
    if let body = operation.body {
      members.append(
        JSONMember(
          name: "requestBody", value: .members(["required": .flag(true), "content": .members(["application/json": .members(["schema": body])])])))
    }
    members.append(JSONMember(name: "responses", value: .object(answers(operation))))
    if operation.needsSession { members.append(JSONMember(name: "security", value: .list([.members(["session": .list([])])]))) }
    return .object(members)
  }

  private static func parameter(_ name: String, in place: String, isRequired: Bool, _ help: String?, _ schema: JSONValue) -> JSONValue {
    let help = help.map { [JSONMember(name: "description", value: .text($0))] } ?? []
    return .object(
      [
        JSONMember(name: "name", value: .text(name)), JSONMember(name: "in", value: .text(place)),
        JSONMember(name: "required", value: .flag(isRequired)),
      ]
        + help + [JSONMember(name: "schema", value: schema)])
  }

  private static func answers(_ operation: Operation) -> [JSONMember] {
    let success: JSONValue =
      switch operation.content {
      case .nothing: .members(["description": .text("Done")])
      case .json(let schema):
        .members(["description": .text("Done"), "content": .members(["application/json": .members(["schema": schema])])])
      }
    var byStatus: [Int: [String]] = [:]
    for code in operation.allRefusals where byStatus[code.status]?.contains(code.name) != true {
      byStatus[code.status, default: []].append(code.name)
    }
    let refusals = byStatus.sorted { $0.key < $1.key }.map { status, codes in
      JSONMember(
        name: String(status),
        value: .members([
          "description": .text(codes.joined(separator: ", ") + (status == 403 ? ", or a policy's own reason" : "")),
          "content": .members([Refusal.mediaType: .members(["schema": Schema.named("Problem")])]),
        ]))
    }
    return [JSONMember(name: String(operation.status), value: success)] + refusals
  }
}

extension Endpoint {
  /// The path with a name in the place of each `{}`.
  fileprivate func path(naming names: [String]) -> String {
    var rest = names[...]
    return path.map { segment in segment == "{}" ? "/{\(rest.popFirst() ?? "")}" : "/\(segment)" }.joined()
  }
}
