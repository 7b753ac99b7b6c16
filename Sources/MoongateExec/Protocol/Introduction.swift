import MoongateSDK

/// The answer of a program to `hello`: the equivalent of a provider descriptor in Swift.
struct Introduction: Decodable, Equatable, Sendable {
  /// The supported protocol versions. The program chooses one in its answer to `hello`. A new version is added if an
  /// existing promise changes or if messages get new contents.
  static let versions = 1...2

  enum Shape: String, Decodable { case code, full }

  /// The kind of identifier that the gateway reads for the program.
  enum ReadIdentifier: String, Decodable, CaseIterable {
    case phone, email

    var kind: IdentifierKind { self == .phone ? .phone : .email }
  }

  struct Field: Decodable, Equatable {
    let name: String
    let kind: InputField.Kind
    let length: Int?
    let required: Bool?
    /// Version 2, in an `ask`: the allowed values of a field of kind `choice`.
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

  /// Version 2: a reason why the delivery of a code can fail.
  struct DeclaredDeliveryReason: Decodable, Equatable {
    let reason: String
    let sentence: String
    let permanent: Bool?
  }

  struct Fact: Decodable, Equatable {
    let name: String
    let kind: FactField.Kind
    /// The kind of identifier that has the fact; nil for the first kind that the program declares.
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
    /// Version 2: the name in lists of several methods.
    let name: String?
    /// Version 2: replacements of texts on its page, by their names.
    let page: [String: String]?
    /// Version 2: the notices to the account owner about a change, by purpose.
    let notices: [String: FactorNotice]?
  }

  /// Version 2: the presentation of its steps on pages.
  struct Shown: Decodable, Equatable {
    enum Kind: String, Decodable {
      case codeEntry = "code_entry"
      case digitPad = "digit_pad"
      case form
      case externalSite = "external_site"
      case ceremony
    }

    let kind: Kind
    /// For a digit pad: the number of digits, and the names of the fields of the current and the new secret.
    let count: Int?
    let current: String?
    let new: String?
    /// For an external site or a ceremony: the label of the button.
    let button: String?
  }

  /// Version 2: how sign-in pages offer the method.
  struct Offered: Decodable, Equatable {
    enum Kind: String, Decodable { case field, button, link }

    let kind: Kind
    /// For a field: the kind of identifier.
    let identifier: ReadIdentifier?
    let label: String?
    let priority: Int?
  }

  /// Version 2: the client library of the program (`python`, `node` or `go`), so that advice uses its terms.
  let library: String?
  /// The version that the program chose.
  let `protocol`: Int
  let shape: Shape
  let identifier: ReadIdentifier?
  /// The additional fields of `begin`, for a full provider.
  let begin: [Field]?
  /// The fields of `submit`, for a full provider.
  let submit: [Field]?
  let settings: [Setting]?
  let outcomes: [DeclaredOutcome]?
  /// Version 2: for a code provider.
  let deliveryReasons: [DeclaredDeliveryReason]?
  /// The facts about proved users for policies.
  let facts: [Fact]?
  let words: Words?
  /// The text of policy.lua.
  let policy: String
  /// Whether it proves separate identities, for example of another site.
  let federated: Bool?
  /// Version 2.
  let presentation: Shown?
  /// Version 2.
  let entrance: Offered?
  /// Version 2: the last component of its page's path.
  let page: String?
  /// Version 2: the texts of its flows, by name.
  let flows: [String: String]?
  /// Version 2: the text of its test cases.
  let cases: String?
  /// Version 2: `identifier`, `factor`, or both.
  let role: [String]?
  /// Version 2: whether `submit` hashes secrets, so that a hashing permit is acquired before the attempt is charged.
  let hashes: Bool?
  /// Version 2: the fields that an external site can send with its callback.
  let callback: [Field]?
  /// Version 2: whether it accepts webhooks.
  let hook: Bool?
  /// Version 2: whether its proofs may say `multi_factor`.
  let multiFactor: Bool?
  /// Version 2: the version of its records; 1 if omitted.
  let recordVersion: Int?
  /// Version 2: the maintenance interval in seconds.
  let maintain: Int?

  enum CodingKeys: String, CodingKey {
    case `protocol`, shape, identifier, begin, submit, settings, outcomes, facts, words, policy, federated,
      presentation, entrance, page, flows
    case cases, role, hashes, maintain, callback, hook, library
    case multiFactor = "multi_factor"
    case recordVersion = "record_version"
    case deliveryReasons = "delivery_reasons"
  }
}

/// A default value in JSON.
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
