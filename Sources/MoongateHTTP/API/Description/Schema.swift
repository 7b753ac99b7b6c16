/// JSON Schema (2020-12, as OpenAPI 3.1 has it), as far as this API needs it.
enum Schema {
  static let text: JSONValue = .members(["type": .text("string")])
  static let flag: JSONValue = .members(["type": .text("boolean")])
  static let count: JSONValue = .members(["type": .text("integer"), "minimum": .number(0)])
  static let number: JSONValue = .members(["type": .text("integer")])
  /// An object whose members are another standard's to say.
  static let anyObject: JSONValue = .members(["type": .text("object")])
  /// ISO 8601 in UTC.
  static let moment: JSONValue = .members(["type": .text("string"), "format": .text("date-time")])
  /// Text, or null as if it were not there.
  static let optionalText: JSONValue = .members(["type": .list([.text("string"), .text("null")])])

  // What a client sends.

  /// Any text: NUL is refused wherever it is (`JSONReader`).
  static let input = input(pattern: anyText)
  /// The same, or null as if it were not there.
  static let optionalInput: JSONValue = .members([
    "type": .list([.text("string"), .text("null")]), "pattern": .text(anyText),
  ])
  /// As `EmailAddress` reads it. The addresses of international domains are sent in their ASCII form.
  static let email: JSONValue = .members([
    "type": .text("string"), "format": .text("email"), "pattern": .text(emailPattern),
  ])
  static let passcode = input(pattern: "^[0-9]{6}$")
  /// Every character is one like any other.
  static let password: JSONValue = .members([
    "type": .text("string"), "minLength": .number(1), "maxLength": .number(1024),
  ])
  static let newPassword: JSONValue = .members([
    "type": .text("string"), "minLength": .number(8), "maxLength": .number(1024),
  ])
  /// The SHA-256 of a verifier in base64url (RFC 7636 section 4.2).
  static let challenge = input(pattern: "^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$")
  /// A person's name.
  static let name: JSONValue = .members([
    "type": .text("string"), "minLength": .number(1), "maxLength": .number(100), "pattern": .text(anyText),
  ])
  /// What a person calls a token (`PersonalTokenName`): it has to have a character that is seen.
  static let tokenName: JSONValue = .members([
    "type": .text("string"), "minLength": .number(1), "maxLength": .number(60),
    "pattern": .text("^[A-Za-z0-9][A-Za-z0-9 ._-]*$"),
  ])
  /// Days, 1 to 366.
  static let tokenLifetime = input(pattern: "^([1-9][0-9]?|[12][0-9][0-9]|3[0-5][0-9]|36[0-6])d$")
  /// An id that an answer named.
  static let id = input(pattern: "^[A-Za-z0-9_-]{1,128}$")
  /// Behind a `?`: control characters are refused (`FormFields`).
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

  /// Members that we do not know, at any depth.
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

  static func oneOf(_ words: [String]) -> JSONValue {
    .members(["type": .text("string"), "enum": .list(words.map { .text($0) })])
  }

  /// A parameter of a query that may be empty, which is as if it were not there.
  static func orEmpty(_ schema: JSONValue) -> JSONValue {
    .members(["anyOf": .list([schema, .members(["const": .text("")])])])
  }
  static func list(of item: JSONValue) -> JSONValue { .members(["type": .text("array"), "items": item]) }

  /// What a client sends: no more items than these.
  static func list(of item: JSONValue, atMost most: Int) -> JSONValue {
    .members(["type": .text("array"), "items": item, "maxItems": .number(most)])
  }

  /// One of `components/schemas`.
  static func named(_ name: String) -> JSONValue { .members(["$ref": .text("#/components/schemas/\(name)")]) }

  static func anyOf(_ schemas: [JSONValue]) -> JSONValue { .members(["anyOf": .list(schemas)]) }

  /// Also null.
  static func nullable(_ schema: JSONValue) -> JSONValue { anyOf([schema, .members(["type": .text("null")])]) }

  /// What we answer: with these members, and no others.
  static func answer(
    _ required: KeyValuePairs<String, JSONValue>, perhaps optional: KeyValuePairs<String, JSONValue> = [:]
  ) -> JSONValue {
    object(required, optional, isClosed: true)
  }

  /// What a client sends: members that we do not know are read and ignored.
  static func body(
    _ required: KeyValuePairs<String, JSONValue>, perhaps optional: KeyValuePairs<String, JSONValue> = [:]
  ) -> JSONValue {
    object(required, optional, isClosed: false)
  }

  private static func object(
    _ required: KeyValuePairs<String, JSONValue>, _ optional: KeyValuePairs<String, JSONValue>, isClosed: Bool
  ) -> JSONValue {
    var members = [JSONMember(name: "type", value: .text("object"))]
    if !required.isEmpty { members.append(JSONMember(name: "required", value: .list(required.map { .text($0.key) }))) }
    if !required.isEmpty || !optional.isEmpty {
      members.append(
        JSONMember(
          name: "properties",
          value: .object((Array(required) + Array(optional)).map { JSONMember(name: $0.key, value: $0.value) })))
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
