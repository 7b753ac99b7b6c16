/// A field of a provider's entry in gateway.lua. Invalid values are reported at load with file and line, so a provider
/// only sees valid settings.
public struct SettingField: Sendable, Equatable {
  /// The type of the field's value.
  public enum Kind: Sendable, Equatable {
    case text
    /// From `env`, `file` or `credential` only. Never printed.
    case secret
    /// A delivery channel, such as `outbox()`.
    case messages(MessageChannel)
    /// A number within these bounds.
    case number(ClosedRange<Double>)
    /// true or false.
    case flag
    /// One of these words.
    case choice([String])
    /// A list of texts, as in `{ "a", "b" }`.
    case list
    /// Texts by name, as in `{ hd = "example.com" }`. A text without a name has its place: `"1"`, `"2"`.
    case table
    /// The path of an existing file, relative to the configuration folder. The provider gets the absolute path.
    case file
    /// The address of a site (``SiteAddress/isSite(_:atMost:)``), or the path of an existing file as for `file`.
    /// Further settings, which take true or false, may follow in a table: `{ "https://example.com", refuse = true }`.
    /// The provider reads them as flags named `NAME.FURTHER`. Not for programs.
    case source(flags: [String])
  }

  /// A name with a dot is a field of a table: `bind.dn` is written `bind = { dn = "…" }`. Such a field is required if
  /// the operator writes the table. The table is not called like a field that the gateway has itself, such as `title`.
  /// Not for programs.
  public let name: String
  public let kind: Kind
  public let isRequired: Bool
  /// One sentence for the operator.
  public let help: String
  /// The default; nil for none. Not allowed for secrets, messages and files.
  public let standard: SettingValue?
  /// Checks the form of a text; nil for a setting that takes every text. Declare it for what is compared exactly later:
  /// a text that can never match is a mistake that the operator should see.
  public let check: Check?

  /// Checks the value of a setting of kind `text`, or each text of a `list` or `table`, when the configuration is
  /// loaded.
  /// - Parameters:
  ///   - text: what the operator wrote.
  ///   - site: the origin of `public_url`, such as `https://auth.example.com`; nil if it cannot be read.
  /// - Returns: a phrase that follows the quoted text in the message and names the right form, such as "is not an
  ///   origin: write https://app.example.com"; nil if the text is right.
  public typealias Check = @Sendable (_ text: String, _ site: String?) -> String?

  /// More than five parameters: one for each field.
  public init(
    name: String, kind: Kind, isRequired: Bool, help: String, standard: SettingValue? = nil, check: Check? = nil
  ) {
    self.name = name
    self.kind = kind
    self.isRequired = isRequired
    self.help = help
    self.standard = standard
    self.check = check
  }

  /// The table that holds the field, and its name there; nil for a field of the entry itself.
  package var placeInTable: (table: String, name: String)? {
    let parts = name.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    return parts.count == 2 ? (String(parts[0]), String(parts[1])) : nil
  }

  /// Compares what is declared. Checks cannot be compared.
  public static func == (left: Self, right: Self) -> Bool {
    left.name == right.name && left.kind == right.kind && left.isRequired == right.isRequired
      && left.help == right.help && left.standard == right.standard && (left.check == nil) == (right.check == nil)
  }
}

/// A validated setting.
public enum SettingValue: Sendable, Equatable {
  /// A text, a choice, a site's address, or a file's absolute path.
  case text(String)
  case number(Double)
  case flag(Bool)
  case list([String])
  case table([String: String])

  /// Whether the value fits a field of this kind. Secrets, messages and files cannot have a value here.
  public func fits(_ kind: SettingField.Kind) -> Bool {
    switch (self, kind) {
    case (.text, .text), (.flag, .flag), (.list, .list), (.table, .table): true
    case (.text(let text), .choice(let words)): words.contains(text)
    case (.number(let number), .number(let bounds)): bounds.contains(number)
    default: false
    }
  }
}

extension SettingValue: ExpressibleByStringLiteral, ExpressibleByFloatLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByBooleanLiteral,
  ExpressibleByArrayLiteral
{
  public init(stringLiteral value: String) { self = .text(value) }
  public init(floatLiteral value: Double) { self = .number(value) }
  public init(integerLiteral value: Int) { self = .number(Double(value)) }
  public init(booleanLiteral value: Bool) { self = .flag(value) }
  public init(arrayLiteral elements: String...) { self = .list(elements) }
}

/// The settings of a provider's entry in gateway.lua.
public struct StepSettings: Sendable {
  private let values: [String: SettingValue]
  private let secrets: [String: @Sendable () -> String]
  /// Secrets that are set, and whose file does not exist yet.
  private let awaited: Set<String>

  /// - Parameters:
  ///   - texts: shorthand for `values` of kind text.
  ///   - values: by name, including defaults.
  ///   - awaited: secrets whose file does not exist yet.
  public init(
    texts: [String: String] = [:], secrets: [String: @Sendable () -> String] = [:],
    values: [String: SettingValue] = [:], awaited: Set<String> = []
  ) {
    self.awaited = awaited
    self.values = values.merging(texts.mapValues { .text($0) }) { first, _ in first }
    self.secrets = secrets
  }

  /// A field of kind `text` or `choice`; nil if the operator omitted it and it has no default.
  public func text(_ name: String) -> String? {
    if case .text(let text) = values[name] { text } else { nil }
  }

  /// A field of kind `number`, within its bounds.
  public func number(_ name: String) -> Double? {
    if case .number(let number) = values[name] { number } else { nil }
  }

  /// A field of kind `flag`; nil if the operator omitted it and it has no default.
  public func flag(_ name: String) -> Bool? {
    if case .flag(let flag) = values[name] { flag } else { nil }
  }

  /// A field of kind `list`; empty if the operator omitted it and it has no default.
  public func list(_ name: String) -> [String] {
    if case .list(let list) = values[name] { list } else { [] }
  }

  /// A field of kind `table`; empty if the operator omitted it and it has no default.
  public func table(_ name: String) -> [String: String] {
    if case .table(let table) = values[name] { table } else { [:] }
  }

  /// Whether a field has a value, from the operator or by default. Distinguishes an empty list from an omitted one. A
  /// secret is also set if the gateway has yet to create its file.
  public func isSet(_ name: String) -> Bool {
    values[name] != nil || secrets[name] != nil || awaited.contains(name)
  }

  /// The absolute path of a field of kind `file`; nil if the operator omitted it. The file existed when the
  /// configuration was loaded.
  public func file(_ name: String) -> String? { text(name) }

  /// A field of kind `secret`; nil if the operator omitted it. Never put it in an error or a log.
  public func secret(_ name: String) -> String? { secrets[name]?() }
}
