import MoongateSDK

/// What a program says of itself in its answer to `hello`: what a provider in Swift declares in its descriptor.
struct Introduction: Decodable, Equatable, Sendable {
  /// The versions of the protocol that are spoken here. A program chooses one in its answer to `hello`; a new one is
  /// there where something that programs were promised changes, or where they are told more than before.
  static let versions = 1...2

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
    /// Version 2, in an `ask`: what a field of kind `choice` may hold.
    let choices: [InputChoice]?

    var field: InputField {
      InputField(name: name, kind: kind, length: length, isRequired: required ?? true, choices: choices)
    }
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

  /// Version 2: a reason for which a code provider may fail to deliver.
  struct DeclaredDeliveryReason: Decodable, Equatable {
    let reason: String
    let sentence: String
    let permanent: Bool?
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
    /// Version 2: what people call it where it is one of several.
    let name: String?
    /// Version 2: what its page says in other words, by the names of the page's words.
    let page: [String: String]?
    /// Version 2: what the owner of an account is told of a change, by purpose.
    let notices: [String: FactorNotice]?
  }

  /// Version 2: how the pages show its steps.
  struct Shown: Decodable, Equatable {
    enum Kind: String, Decodable {
      case codeEntry = "code_entry"
      case digitPad = "digit_pad"
      case form
      case externalSite = "external_site"
      case ceremony
    }

    let kind: Kind
    /// Of a pad: how many digits, and the fields of the current and of the new ones.
    let count: Int?
    let current: String?
    let new: String?
    /// Of another site or a ceremony: what the button says that leads there or starts it.
    let button: String?
  }

  /// Version 2: how the pages for signing in offer it.
  struct Offered: Decodable, Equatable {
    enum Kind: String, Decodable { case field, button, link }

    let kind: Kind
    /// Of a field: whose it is.
    let identifier: ReadIdentifier?
    let label: String?
    let priority: Int?
  }

  /// Version 2: which library for programs it uses (`python`, `node` or `go`), so that its author is advised in the
  /// words of that one.
  let library: String?
  /// The version that the program chose.
  let `protocol`: Int
  let shape: Shape
  let identifier: ReadIdentifier?
  /// What `begin` takes beside the identifier's own fields; for a full provider.
  let begin: [Field]?
  /// What `submit` takes; for a full provider.
  let submit: [Field]?
  let settings: [Setting]?
  let outcomes: [DeclaredOutcome]?
  /// Version 2: of a code provider.
  let deliveryReasons: [DeclaredDeliveryReason]?
  /// What policies may ask of whom it proves.
  let facts: [Fact]?
  let words: Words?
  /// The text of its policy.lua.
  let policy: String
  /// Whether it proves identities of its own making, such as those of another site.
  let federated: Bool?
  /// Version 2.
  let presentation: Shown?
  /// Version 2.
  let entrance: Offered?
  /// Version 2: the last part of its page's address.
  let page: String?
  /// Version 2: the texts of the flows that come with it, by name.
  let flows: [String: String]?
  /// Version 2: the text of the cases that come with it.
  let cases: String?
  /// Version 2: `identifier`, `factor`, or both.
  let role: [String]?
  /// Version 2: whether it has secrets hashed in `submit`, so that a permit is there before an attempt is charged.
  let hashes: Bool?
  /// Version 2: what another site may send back with a person.
  let callback: [Field]?
  /// Version 2: whether a vendor's servers may call it.
  let hook: Bool?
  /// Version 2: the version of the records that it keeps; 1 if it says nothing.
  let recordVersion: Int?
  /// Version 2: how often it is to be maintained, in seconds.
  let maintain: Int?

  enum CodingKeys: String, CodingKey {
    case `protocol`, shape, identifier, begin, submit, settings, outcomes, facts, words, policy, federated,
      presentation, entrance, page, flows
    case cases, role, hashes, maintain, callback, hook, library
    case recordVersion = "record_version"
    case deliveryReasons = "delivery_reasons"
  }
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
