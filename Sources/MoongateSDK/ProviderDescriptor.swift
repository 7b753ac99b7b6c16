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
  /// Flows that come with the provider, each the text of a flows/NAME.lua. They are there while gateway.lua configures the provider and the
  /// operator's folder has no flow of the same name. Each begins with a session: which flows let people in is the operator's to decide.
  public let flows: [PolicySource]
  /// Cases that come with the provider, the text of a tests/NAME.lua: what holds of its own flows whatever the numbers of its policy are. `moongate check`
  /// plays those that name no other flows, unless the operator's folder has a tests/NAME.lua. nil for none.
  public let cases: PolicySource?
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
  /// What the hosted pages show of its steps; nil lets them do with its name.
  public let words: StepWords?
  /// How the pages show its steps; nil for the usual one of its shape: boxes for a code provider, a form for any other.
  public let presentation: Presentation?
  /// How the pages for signing in and registering offer it; nil: by a link.
  public let entrance: Entrance?
  /// The last part of its page's address: `verify` for `/auth/verify`; nil for `/auth/step/NAME`. For `codeEntry` and `digitPad`.
  public let page: String?
  /// What it is to an account.
  public let role: ProviderRole
  /// The version of this library that it was written for. A program refuses to start with one of its future.
  public let sdk: Int

  public init(
    name: ProviderName, beginFields: [InputField], submitFields: [InputField], settings: [SettingField], policy: PolicySource,
    flows: [PolicySource] = [], cases: PolicySource? = nil, identifierKinds: [IdentifierKind], hashesSecrets: Bool = false, secretSpace: Int? = nil,
    outcomes: [Outcome] = [], facts: [FactField] = [],
    words: StepWords? = nil, presentation: Presentation? = nil, entrance: Entrance? = nil, page: String? = nil, role: ProviderRole? = nil,
    sdk: Int = SDKVersion.current
  ) {
    self.name = name
    self.beginFields = beginFields
    self.submitFields = submitFields
    self.settings = settings
    self.policy = policy
    self.flows = flows
    self.cases = cases
    self.identifierKinds = identifierKinds
    self.hashesSecrets = hashesSecrets
    self.secretSpace = secretSpace
    self.outcomes = outcomes
    self.facts = facts
    self.words = words
    self.presentation = presentation
    self.entrance = entrance
    self.page = page
    self.role = role ?? ProviderRole(identifierKinds.isEmpty ? [] : [.provesIdentifier]).union(hashesSecrets ? .keepsFactor : [])
    self.sdk = sdk
  }

  /// The declared outcome of a reason; nil where it was not declared.
  public func outcome(_ reason: RefusalReason) -> Outcome? { outcomes.first { $0.reason == reason } }
}

/// A Lua file that a provider ships, such as its default policy, and the name by which messages refer to it.
public struct PolicySource: Sendable {
  /// Where its author finds it: `Plugins/PhoneOTP/policy.lua`. A flow has the name of its file: `Plugins/PIN/flows/pin_set.lua`.
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

/// What a message says when a factor of an account was changed.
public struct FactorNotice: Sendable, Equatable, Codable {
  /// The subject of a mail, without the service's name: "Passcode set".
  public let subject: String
  /// What happened, as a sentence without its end: "A passcode was set for your account".
  public let event: String

  public init(subject: String, event: String) {
    self.subject = subject
    self.event = event
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
  /// What people call it where it is one of several: "Code by SMS". nil: its title.
  public let name: String?
  /// What the presentation says in other words for this provider, by the names of the page's words (`en.words`): `["enter_passcode": "Enter your vault code"]`.
  public let page: [String: String]
  /// What the owner of an account is told by a message when the factor is set, changed or disabled; what is not here is said with the title.
  public let notices: [StepPurpose: FactorNotice]
  /// All of that, what its steps show and the sentences of its outcomes in other languages: by the language's tag (BCP 47, `hi`), then by the
  /// English text. What is not here is shown in English; what an operator's own words say goes first.
  public let translations: [String: [String: String]]

  public init(
    title: String, name: String? = nil, instruction: String = "", labels: [String: String] = [:], links: [StepPurpose: String] = [:],
    page: [String: String] = [:], notices: [StepPurpose: FactorNotice] = [:], translations: [String: [String: String]] = [:]
  ) {
    self.title = title
    self.instruction = instruction
    self.labels = labels
    self.links = links
    self.name = name
    self.page = page
    self.notices = notices
    self.translations = translations
  }

  /// The same with the translations of files that a target embeds, such as words/hi.words: a line each, `English text = translation`. Lines that are
  /// empty or begin with # say nothing.
  public init(
    title: String, name: String? = nil, instruction: String = "", labels: [String: String] = [:], links: [StepPurpose: String] = [:],
    page: [String: String] = [:], notices: [StepPurpose: FactorNotice] = [:], translations files: [(tag: String, file: [UInt8])]
  ) {
    self.init(
      title: title, name: name, instruction: instruction, labels: labels, links: links, page: page, notices: notices,
      translations: Dictionary(files.map { ($0.tag, Self.translations(in: $0.file)) }) { first, _ in first })
  }

  /// The lines of a file of words, by the English text.
  public static func translations(in file: [UInt8]) -> [String: String] {
    let lines = String(decoding: file, as: UTF8.self).split(whereSeparator: \.isNewline).filter { !$0.hasPrefix("#") }
    let pairs = lines.compactMap { line -> (String, String)? in
      let parts = line.split(separator: " = ", maxSplits: 1, omittingEmptySubsequences: false)
      return parts.count == 2 ? (String(parts[0]), String(parts[1])) : nil
    }
    return Dictionary(pairs) { first, _ in first }
  }

  /// The translations of a language, by the English text: those of the very tag, else of its language (`hi` for `hi-IN`).
  public func translations(in tag: String) -> [String: String] {
    translations[tag] ?? translations[String(tag.prefix { $0 != "-" })] ?? [:]
  }
}
