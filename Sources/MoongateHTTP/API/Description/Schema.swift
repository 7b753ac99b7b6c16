/// JSON Schema (2020-12, as OpenAPI 3.1 has it), as far as this API needs it.
enum Schema {
  static let text: JSONValue = .members(["type": .text("string")])
  static let flag: JSONValue = .members(["type": .text("boolean")])
  static let count: JSONValue = .members(["type": .text("integer"), "minimum": .number(0)])
  static let number: JSONValue = .members(["type": .text("integer")])
  /// ISO 8601 in UTC.
  static let moment: JSONValue = .members(["type": .text("string"), "format": .text("date-time")])
  /// Text, or null as if it were not there.
  static let optionalText: JSONValue = .members(["type": .list([.text("string"), .text("null")])])

  static func oneOf(_ words: [String]) -> JSONValue { .members(["type": .text("string"), "enum": .list(words.map { .text($0) })]) }

  static func list(of item: JSONValue) -> JSONValue { .members(["type": .text("array"), "items": item]) }

  /// One of `components/schemas`.
  static func named(_ name: String) -> JSONValue { .members(["$ref": .text("#/components/schemas/\(name)")]) }

  /// Also null.
  static func nullable(_ schema: JSONValue) -> JSONValue { .members(["anyOf": .list([schema, .members(["type": .text("null")])])]) }

  /// What we answer: with these members, and no others.
  static func answer(_ required: KeyValuePairs<String, JSONValue>, perhaps optional: KeyValuePairs<String, JSONValue> = [:]) -> JSONValue {
    object(required, optional, isClosed: true)
  }

  /// What a client sends: members that we do not know are ignored.
  static func body(_ required: KeyValuePairs<String, JSONValue>, perhaps optional: KeyValuePairs<String, JSONValue> = [:]) -> JSONValue {
    object(required, optional, isClosed: false)
  }

  private static func object(
    _ required: KeyValuePairs<String, JSONValue>, _ optional: KeyValuePairs<String, JSONValue>, isClosed: Bool
  ) -> JSONValue {
    var members = [JSONMember(name: "type", value: .text("object"))]
    if !required.isEmpty { members.append(JSONMember(name: "required", value: .list(required.map { .text($0.key) }))) }
    if !required.isEmpty || !optional.isEmpty {
      members.append(
        JSONMember(name: "properties", value: .object((Array(required) + Array(optional)).map { JSONMember(name: $0.key, value: $0.value) })))
    }
    if isClosed { members.append(JSONMember(name: "additionalProperties", value: .flag(false))) }
    return .object(members)
  }
}
