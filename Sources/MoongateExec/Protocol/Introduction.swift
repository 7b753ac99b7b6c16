import MoongateSDK

/// What a program says of itself in its answer to `hello`: what a provider in Swift declares in its descriptor.
struct Introduction: Decodable, Equatable, Sendable {
  /// The version of the protocol that is spoken here. It grows where something that programs were promised changes.
  static let version = 1

  enum Shape: String, Decodable { case code, full }

  /// What kind of identifier the gateway reads for it, with its own reader.
  enum ReadIdentifier: String, Decodable, CaseIterable {
    case phone, email

    var kind: IdentifierKind { self == .phone ? .phone : .email }
  }

  struct Field: Decodable, Equatable {
    let name: String
    let kind: InputField.Kind
    let length: Int?
    let required: Bool?

    var field: InputField { InputField(name: name, kind: kind, length: length, isRequired: required ?? true) }
  }

  struct Setting: Decodable, Equatable {
    enum Kind: String, Decodable { case text, secret, number, flag, choice, list, file }

    let name: String
    let kind: Kind
    let help: String?
    let required: Bool?
    let minimum: Double?
    let maximum: Double?
    let choices: [String]?
    let `default`: DeclaredValue?
  }

  struct DeclaredOutcome: Decodable, Equatable {
    let reason: String
    let sentence: String
    let counts: Bool?
  }

  struct Fact: Decodable, Equatable {
    let name: String
    let kind: FactField.Kind
    /// Which identifiers carry it; nil: those of the first kind that the program declares.
    let of: IdentifierKind?
    let help: String?

    var field: FactField { FactField(name: name, kind: kind, of: of, help: help ?? "what the program calls \(name)") }
  }

  struct Words: Decodable, Equatable {
    let title: String
    let instruction: String?
    let labels: [String: String]?
    /// By purpose.
    let links: [String: String]?
    /// By language, then by the English text.
    let translations: [String: [String: String]]?
  }

  let shape: Shape
  let identifier: ReadIdentifier?
  /// What `begin` takes beside the identifier's own fields; for a full provider.
  let begin: [Field]?
  /// What `submit` takes; for a full provider.
  let submit: [Field]?
  let settings: [Setting]?
  let outcomes: [DeclaredOutcome]?
  /// What policies may ask of whom it proves.
  let facts: [Fact]?
  let words: Words?
  /// The text of its policy.lua.
  let policy: String
  /// Whether it proves identities of its own making, such as those of another site.
  let federated: Bool?
}

/// A default, as JSON says it.
struct DeclaredValue: Decodable, Equatable, Sendable {
  let value: SettingValue

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let text = try? container.decode(String.self) {
      value = .text(text)
    } else if let flag = try? container.decode(Bool.self) {
      value = .flag(flag)
    } else if let number = try? container.decode(Double.self) {
      value = .number(number)
    } else {
      value = .list(try container.decode([String].self))
    }
  }
}
