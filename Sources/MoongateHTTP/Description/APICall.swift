import HTTPTypes
import MoongateCore

/// A call of the API, as the reference describes it. `openapi.json` has the whole schema.
package struct APICall: Sendable {
  /// The calls of the public listener.
  package static let api = Operation.api.map(APICall.init)
  /// The calls of the admin listener.
  package static let admin = Operation.admin.map(APICall.init)

  /// The `operationId` in `openapi.json`.
  package let id: String
  /// The section that it belongs to.
  package let section: String
  /// The method and the path: `POST /api/auth/flows/{flow}/begin`.
  package let address: String
  package let summary: String
  /// The fields of the query and of the body; those that may be left out end with `?`.
  package let fields: [String]
  /// The status of a successful answer.
  package let status: Int
  /// The error codes that its refusals can have, besides those that every call can have.
  package let codes: [String]

  package init(_ operation: Operation) {
    id = operation.id
    section = operation.tag.name
    address = "\(operation.method.rawValue) \(operation.path)"
    summary = operation.summary
    fields = operation.query.map { $0.isRequired ? $0.name : "\($0.name)?" } + Self.fields(of: operation.body)
    status = operation.status
    codes = Set(operation.refusals.map(\.name)).sorted()
  }

  /// The members of the body's schema.
  private static func fields(of body: JSONValue?) -> [String] {
    guard case .object(let properties)? = body?["properties"] else { return [] }
    var required: [JSONValue] = []
    if case .list(let names)? = body?["required"] { required = names }
    return properties.map { required.contains(.text($0.name)) ? $0.name : "\($0.name)?" }
  }
}
