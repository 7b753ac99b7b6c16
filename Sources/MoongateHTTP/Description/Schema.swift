/// The parts of JSON Schema (2020-12, as in OpenAPI 3.1) that this API uses.
package enum Schema {
  package static let text: JSONValue = .members(["type": .text("string")])
  package static let flag: JSONValue = .members(["type": .text("boolean")])
  package static let count: JSONValue = .members(["type": .text("integer"), "minimum": .number(0)])
  static let number: JSONValue = .members(["type": .text("integer")])
  /// An object whose members are defined by another standard.
  static let anyObject: JSONValue = .members(["type": .text("object")])
  /// ISO 8601 in UTC.
  static let moment: JSONValue = .members(["type": .text("string"), "format": .text("date-time")])
  /// Text, or null as if it were absent.
  package static let optionalText: JSONValue = .members(["type": .list([.text("string"), .text("null")])])

  // Input of clients.

  /// Any text without NUL, which `JSONReader` refuses.
  package static let input = input(pattern: anyText)
  /// The same, or null as if it were absent.
  package static let optionalInput: JSONValue = .members([
    "type": .list([.text("string"), .text("null")]), "pattern": .text(anyText),
  ])
  /// An email address as `EmailAddress` reads it. International domains are sent in their ASCII form.
  package static let email: JSONValue = .members([
    "type": .text("string"), "format": .text("email"), "pattern": .text(emailPattern),
  ])
  package static let passcode = input(pattern: "^[0-9]{6}$")
  /// Any characters are allowed.
  package static let password: JSONValue = .members([
    "type": .text("string"), "minLength": .number(1), "maxLength": .number(1024),
  ])
  package static let newPassword: JSONValue = .members([
    "type": .text("string"), "minLength": .number(8), "maxLength": .number(1024),
  ])
  /// The SHA-256 of a verifier in base64url (RFC 7636, section 4.2).
  static let challenge = input(pattern: "^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$")
  /// The name of a person.
  package static let name: JSONValue = .members([
    "type": .text("string"), "minLength": .number(1), "maxLength": .number(100), "pattern": .text(anyText),
  ])
  /// The name of a personal token (`PersonalTokenName`). It must have a visible character.
  static let tokenName: JSONValue = .members([
    "type": .text("string"), "minLength": .number(1), "maxLength": .number(60),
    "pattern": .text("^[A-Za-z0-9][A-Za-z0-9 ._-]*$"),
  ])
  /// A number of days from 1 to 366.
  static let tokenLifetime = input(pattern: "^([1-9][0-9]?|[12][0-9][0-9]|3[0-5][0-9]|36[0-6])d$")
  /// An id from an earlier answer.
  static let id = input(pattern: "^[A-Za-z0-9_-]{1,128}$")
  /// Text in a query. `FormFields` refuses control characters.
  static let queryText = input(pattern: "^[^\\u0000-\\u001f\\u007f]+$")

  private static let anyText = "^[^\\u0000]*$"
  private static let emailPattern: String = {
    let atoms = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
    let label = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
    return "^\(atoms)(\\.\(atoms))*@(\(label)\\.)+[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$"
  }()

  private static func input(pattern: String) -> JSONValue {
    .members(["type": .text("string"), "pattern": .text(pattern)])
  }

  /// Unknown members at any depth.
  static let ignored: JSONValue = .members([
    "anyOf": .list([
      .members(["type": .list([.text("boolean"), .text("number"), .text("null")])]), input,
      .members(["type": .text("array"), "items": named("Ignored")]),
      .members([
        "type": .text("object"), "propertyNames": .members(["pattern": .text(anyText)]),
        "additionalProperties": named("Ignored"),
      ]),
    ])
  ])

  package static func oneOf(_ words: [String]) -> JSONValue {
    .members(["type": .text("string"), "enum": .list(words.map { .text($0) })])
  }

  /// A parameter of a query that may be empty, which is treated as absent.
  static func orEmpty(_ schema: JSONValue) -> JSONValue {
    .members(["anyOf": .list([schema, .members(["const": .text("")])])])
  }
  static func list(of item: JSONValue) -> JSONValue { .members(["type": .text("array"), "items": item]) }

  /// A list of texts that a client sends, or null as if it were absent.
  static let optionalTexts: JSONValue = .members(["type": .list([.text("array"), .text("null")]), "items": text])

  /// A list that a client sends, with at most this many items.
  package static func list(of item: JSONValue, atMost most: Int) -> JSONValue {
    .members(["type": .text("array"), "items": item, "maxItems": .number(most)])
  }

  /// A reference to `components/schemas`.
  package static func named(_ name: String) -> JSONValue { .members(["$ref": .text("#/components/schemas/\(name)")]) }

  static func anyOf(_ schemas: [JSONValue]) -> JSONValue { .members(["anyOf": .list(schemas)]) }

  /// The schema, or null.
  package static func nullable(_ schema: JSONValue) -> JSONValue { anyOf([schema, .members(["type": .text("null")])]) }

  /// An answer of the gateway: these members and no others.
  /// - Parameter more: further members that are always present, after those that several answers share.
  package static func answer(
    _ required: KeyValuePairs<String, JSONValue>, and more: KeyValuePairs<String, JSONValue> = [:],
    perhaps optional: KeyValuePairs<String, JSONValue> = [:]
  ) -> JSONValue {
    object(Array(required) + Array(more), Array(optional), isClosed: true)
  }

  /// A request body. Unknown members are ignored.
  package static func body(
    _ required: KeyValuePairs<String, JSONValue>, perhaps optional: KeyValuePairs<String, JSONValue> = [:]
  ) -> JSONValue {
    object(Array(required), Array(optional), isClosed: false)
  }

  private static func object(
    _ required: [(key: String, value: JSONValue)], _ optional: [(key: String, value: JSONValue)], isClosed: Bool
  ) -> JSONValue {
    var members = [JSONMember(name: "type", value: .text("object"))]
    if !required.isEmpty { members.append(JSONMember(name: "required", value: .list(required.map { .text($0.key) }))) }
    if !required.isEmpty || !optional.isEmpty {
      members.append(
        JSONMember(
          name: "properties",
          value: .object((required + optional).map { JSONMember(name: $0.key, value: $0.value) })))
    }
    if isClosed {
      members.append(JSONMember(name: "additionalProperties", value: .flag(false)))
    } else {
      members.append(JSONMember(name: "propertyNames", value: .members(["pattern": .text(anyText)])))
      members.append(JSONMember(name: "additionalProperties", value: named("Ignored")))
    }
    return .object(members)
  }
}
