import MoongateSDK

/// The answer of a program to `hello`: the equivalent of a provider descriptor in Swift.
struct Introduction: Decodable, Equatable, Sendable {
  /// The supported protocol versions. The program chooses one in its answer to `hello`. A new version is added if an
  /// existing promise changes. New optional members need none.
  static let versions = 1...1

  /// Why the gateway does not start a program that chose this version, and what to do.
  static func unsupported(_ version: Int) -> String {
    let supported = versions.map(String.init).joined(separator: " or ")
    let remedy =
      version > versions.upperBound
      ? "update the gateway, or let the program answer `protocol`: \(versions.upperBound)" : "update the program"
    return "speaks version \(version) of the protocol, and this gateway version \(supported): \(remedy)"
  }

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
    /// In an `ask`: the allowed values of a field of kind `choice`.
    let choices: [InputChoice]?

    var field: InputField {
      InputField(name: name, kind: kind, length: length, isRequired: required ?? true, choices: choices)
    }
  }

  struct Setting: Decodable, Equatable {
    enum Kind: String, Decodable { case text, secret, number, flag, choice, list, table, file }

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

  /// A reason why the delivery of a code can fail.
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
    /// The name in lists of several providers.
    let name: String?
    /// Replacements of texts on its page, by their names.
    let page: [String: String]?
    /// The notices to the account owner about a change, by purpose.
    let notices: [String: FactorNotice]?
  }

  /// The presentation of its steps on pages.
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

  /// How sign-in pages offer the provider.
  struct Offered: Decodable, Equatable {
    enum Kind: String, Decodable { case field, button, link }

    let kind: Kind
    /// For a field: the kind of identifier.
    let identifier: ReadIdentifier?
    let label: String?
    let priority: Int?
  }

  /// The client library of the program (`python`, `node` or `go`), so that advice uses its terms.
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
  /// For a code provider.
  let deliveryReasons: [DeclaredDeliveryReason]?
  /// The facts about proved users for policies.
  let facts: [Fact]?
  let words: Words?
  /// The text of policy.lua.
  let policy: String
  /// Whether it proves separate identities, for example of another site.
  let federated: Bool?
  let presentation: Shown?
  let entrance: Offered?
  /// The last component of its page's path.
  let page: String?
  /// The texts of its flows, by name.
  let flows: [String: String]?
  /// The text of its test cases.
  let cases: String?
  /// `identifier`, `factor`, or both; `several` and `finds_account`.
  let role: [String]?
  /// Whether `submit` hashes secrets, so that a hashing permit is acquired before the attempt is charged.
  let hashes: Bool?
  /// The fields that an external site can send with its callback.
  let callback: [Field]?
  /// Whether it accepts webhooks.
  let hook: Bool?
  /// Whether its proofs may say `multi_factor`.
  let multiFactor: Bool?
  /// The version of its records; 1 if omitted.
  let recordVersion: Int?
  /// The maintenance interval in seconds.
  let maintain: Int?
  /// Whether it can ask its site again about an identity.
  let recheck: Bool?

  enum CodingKeys: String, CodingKey {
    case `protocol`, shape, identifier, begin, submit, settings, outcomes, facts, words, policy, federated,
      presentation, entrance, page, flows
    case cases, role, hashes, maintain, recheck, callback, hook, library
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
    } else if let table = try? container.decode([String: String].self) {
      value = .table(table)
    } else {
      value = .list(try container.decode([String].self))
    }
  }
}
