import HTTPTypes
import Hummingbird
import MoongateCore

/// An OpenAPI document that is generated from endpoints.
struct OpenAPIDocument: Sendable {
  let title: String
  let description: String
  let tags: [Operation.Tag]
  /// The name of the bearer token's security scheme.
  let security: String
  /// `components/schemas`.
  let schemas: [(key: String, value: JSONValue)]
  /// Schemas of enumerated words, by name.
  let lists: KeyValuePairs<String, [String]>
  /// Refusals of every call, in addition to those in its description.
  var refusals: [RefusalCode] = []
  var everyCallNeedsToken = false

  /// The OpenAPI 3.1 document of the endpoints with a description.
  func document(of endpoints: [Endpoint]) -> JSONValue {
    var paths: [(path: String, operations: [JSONMember])] = []
    for endpoint in endpoints {
      guard let operation = endpoint.operation else { continue }
      let path = operation.path
      let member = JSONMember(name: operation.method.rawValue.lowercased(), value: describe(operation))
      if let index = paths.firstIndex(where: { $0.path == path }) {
        paths[index].operations.append(member)
      } else {
        paths.append((path, [member]))
      }
    }
    return .members([
      "openapi": .text("3.1.0"),
      "info": .members([
        "title": .text(title), "version": .text("1"), "description": .text(description),
      ]),
      "tags": .list(tags.map { .members(["name": .text($0.name)]) }),
      "paths": .object(paths.map { JSONMember(name: $0.path, value: .object($0.operations)) }),
      "components": .members([
        "securitySchemes": .object([
          JSONMember(name: security, value: .members(["type": .text("http"), "scheme": .text("bearer")]))
        ]),
        "schemas": .object(
          schemas.map { JSONMember(name: $0.key, value: $0.value) }
            + lists.map { JSONMember(name: $0.key, value: Schema.oneOf($0.value)) }),
      ]),
    ])
  }

  /// The endpoint that answers with the document. The document describes it too.
  /// - Parameter others: the other endpoints. Those without a description do not belong to the document.
  func endpoint(_ operation: Operation, servesAllDomains: Bool = false, describing others: [Endpoint]) -> Endpoint {
    func own(_ handle: @escaping @Sendable (Exchange) async throws(Refusal) -> Response) -> Endpoint {
      Endpoint(.call, operation, servesAllDomains: servesAllDomains, handle: handle)
    }
    let text = document(of: others + [own { _ throws(Refusal) in .nothing }]).bytes + [UInt8(ascii: "\n")]
    return own { _ throws(Refusal) in .plain(.ok, type: "application/json", text) }
  }

  private func describe(_ operation: Operation) -> JSONValue {
    var members: [JSONMember] = [
      JSONMember(name: "operationId", value: .text(operation.id)),
      JSONMember(name: "summary", value: .text(operation.summary)),
      JSONMember(name: "tags", value: .list([.text(operation.tag.name)])),
    ]
    let parameters =
      operation.parameters.map { parameter($0, in: "path", isRequired: true, nil, Schema.id) }
      + operation.query.map { parameter($0.name, in: "query", isRequired: $0.isRequired, $0.help, $0.schema) }
    if !parameters.isEmpty { members.append(JSONMember(name: "parameters", value: .list(parameters))) }
    if let body = operation.body {
      members.append(
        JSONMember(
          name: "requestBody",
          value: .members([
            "required": .flag(true), "content": .members(["application/json": .members(["schema": body])]),
          ])))
    }
    members.append(JSONMember(name: "responses", value: .object(answers(operation))))
    if operation.needsSession || (everyCallNeedsToken && !operation.isOpen) {
      members.append(
        JSONMember(name: "security", value: .list([.object([JSONMember(name: security, value: .list([]))])])))
    }
    return .object(members)
  }

  private func parameter(_ name: String, in place: String, isRequired: Bool, _ help: String?, _ schema: JSONValue)
    -> JSONValue
  {
    let help = help.map { [JSONMember(name: "description", value: .text($0))] } ?? []
    return .object(
      [
        JSONMember(name: "name", value: .text(name)), JSONMember(name: "in", value: .text(place)),
        JSONMember(name: "required", value: .flag(isRequired)),
      ]
        + help + [JSONMember(name: "schema", value: schema)])
  }

  private func answers(_ operation: Operation) -> [JSONMember] {
    let success: JSONValue =
      switch operation.content {
      case .nothing: .members(["description": .text("Done")])
      case .json(let schema):
        .members([
          "description": .text("Done"),
          "content": .object(
            [JSONMember(name: "application/json", value: .members(["schema": schema]))]
              + operation.otherTypes.map { JSONMember(name: $0, value: .members(["schema": Schema.text])) }),
        ])
      case .text(let type):
        .object([
          JSONMember(name: "description", value: .text("Done")),
          JSONMember(
            name: "content", value: .object([JSONMember(name: type, value: .members(["schema": Schema.text]))])),
        ])
      }
    var byStatus: [Int: [String]] = [:]
    for code in operation.allRefusals + refusals where byStatus[code.status]?.contains(code.name) != true {
      byStatus[code.status, default: []].append(code.name)
    }
    let refused = byStatus.sorted { $0.key < $1.key }.map { status, codes in
      JSONMember(
        name: String(status),
        value: .members([
          "description": .text(codes.joined(separator: ", ") + (status == 403 ? ", or a policy's own reason" : "")),
          "content": .members([Refusal.mediaType: .members(["schema": Schema.named("Problem")])]),
        ]))
    }
    let others = operation.otherAnswers.sorted { $0.key < $1.key }.map { status, schema in
      JSONMember(
        name: String(status),
        value: .members([
          "description": .text(status == 503 ? "Not ready" : "Refused: the reasons"),
          "content": .members(["application/json": .members(["schema": schema])]),
        ]))
    }
    return [JSONMember(name: String(operation.status), value: success)] + others
      + refused.filter { member in
        !others.contains { $0.name == member.name }
      }
  }
}
