/// What a provider declares about itself.
public struct ProviderDescriptor: Sendable {
  public let name: ProviderName
  /// What `begin` takes.
  public let beginFields: [InputField]
  /// What `submit` takes; a code provider's `code` field is completed by the core with the policy's length.
  public let submitFields: [InputField]
  /// What its entry under `providers` in gateway.lua may hold.
  public let settings: [SettingField]
  /// Its default policy: the text of its `policy.lua`.
  public let policy: PolicySource
  /// The kinds of identifier that it reads or proves.
  public let identifierKinds: [IdentifierKind]
  /// Whether its `submit` hashes secrets: the core then takes a slot of the hashing threads before it charges a try, and
  /// answers `busy` where there is none.
  public let hashesSecrets: Bool
  /// How many different secrets people may choose from, for the guess budget of `moongate check`; nil where that is not known,
  /// as of passwords, or where there is no secret to guess. That people choose evenly is assumed, and said.
  public let secretSpace: Int?
  /// All refusals that it may answer. One that is not here is a fault of the provider: answered 503, logged, given back, and never a
  /// pass. A code provider needs none: its codes are the core's to refuse.
  public let outcomes: [Outcome]
  /// What the identifiers that it reads carry as attributes, for policies to ask about.
  public let facts: [FactField]
  /// What the hosted pages show of its steps; nil lets them do with its name. Pages that know a provider by name show their own.
  public let words: StepWords?
  /// The version of this library that it was written for. A program refuses to start with one of its future.
  public let sdk: Int

  public init(
    name: ProviderName, beginFields: [InputField], submitFields: [InputField], settings: [SettingField], policy: PolicySource,
    identifierKinds: [IdentifierKind], hashesSecrets: Bool = false, secretSpace: Int? = nil, outcomes: [Outcome] = [], facts: [FactField] = [],
    words: StepWords? = nil, sdk: Int = SDKVersion.current
  ) {
    self.name = name
    self.beginFields = beginFields
    self.submitFields = submitFields
    self.settings = settings
    self.policy = policy
    self.identifierKinds = identifierKinds
    self.hashesSecrets = hashesSecrets
    self.secretSpace = secretSpace
    self.outcomes = outcomes
    self.facts = facts
    self.words = words
    self.sdk = sdk
  }

  /// The declared outcome of a reason; nil where it was not declared.
  public func outcome(_ reason: RefusalReason) -> Outcome? { outcomes.first { $0.reason == reason } }
}

/// The defaults that a provider ships, and the name by which problems and `policy show` point at them.
public struct PolicySource: Sendable {
  /// Where its author finds it: `Plugins/PhoneOTP/policy.lua`.
  public let file: String
  /// Lua, UTF-8.
  public let text: String

  public init(file: String, text: String) {
    self.file = file
    self.text = text
  }
}

/// One thing that a step asks a person for.
public struct InputField: Sendable, Equatable, Codable {
  public enum Kind: String, Sendable, Codable {
    case digits
    case text
    case phone
    case email
    case password
    case region
  }

  public let name: String
  public let kind: Kind
  /// Characters, where the number is fixed.
  public let length: Int?
  public let isRequired: Bool

  public init(name: String, kind: Kind, length: Int? = nil, isRequired: Bool = true) {
    self.name = name
    self.kind = kind
    self.length = length
    self.isRequired = isRequired
  }
}

/// Something that identifiers carry and policies may ask about: with `of: .phone` and the name `country` a policy reads
/// `f.phone.country`. Its value is the identifier's attribute of this name; where there is none, the policy reads nil.
public struct FactField: Sendable, Equatable {
  /// How the attribute's text is read.
  public enum Kind: String, Sendable, Codable {
    case text
    /// A decimal number: `12`, `-0.5`.
    case number
    /// `true` or `false`.
    case flag
  }

  /// Snake case, and none of the core's own: not `e164`, not `address`.
  public let name: String
  public let kind: Kind
  /// Which identifiers carry it; nil: those of the first kind that the provider declares.
  public let of: IdentifierKind?
  /// For editors and the manual, a few words: "the number's country in two letters".
  public let help: String

  public init(name: String, kind: Kind, of: IdentifierKind? = nil, help: String) {
    self.name = name
    self.kind = kind
    self.of = of
    self.help = help
  }
}

/// What the hosted pages show of a step. Plain text: pages escape it, so there is no HTML in it.
public struct StepWords: Sendable, Equatable, Codable {
  /// The heading: "Your authenticator app".
  public let title: String
  /// One or two sentences: what the person is to do.
  public let instruction: String
  /// What stands at each field, by its name; a field that is not here is called by its name.
  public let labels: [String: String]
  /// What the account page calls the links to its flows `NAME_set`, `NAME_change` and `NAME_disable`, by purpose; one that is not here is
  /// called "Set up", "Change" or "Turn off".
  public let links: [StepPurpose: String]
  /// All of that, what its steps show and the sentences of its outcomes in other languages: by the language's tag (BCP 47, `hi`), then by the
  /// English text. What is not here is shown in English; what an operator's own words say goes first.
  public let translations: [String: [String: String]]

  public init(
    title: String, instruction: String = "", labels: [String: String] = [:], links: [StepPurpose: String] = [:],
    translations: [String: [String: String]] = [:]
  ) {
    self.title = title
    self.instruction = instruction
    self.labels = labels
    self.links = links
    self.translations = translations
  }

  /// The translations of a language, by the English text: those of the very tag, else of its language (`hi` for `hi-IN`).
  public func translations(in tag: String) -> [String: String] {
    translations[tag] ?? translations[String(tag.prefix { $0 != "-" })] ?? [:]
  }
}
