/// What a provider declares about itself.
public struct ProviderDescriptor: Sendable {
  public package(set) var name: ProviderName
  /// What `begin` takes.
  public let beginFields: [InputField]
  /// What `submit` takes; a code provider's `code` field is completed by the core with the policy's length.
  public let submitFields: [InputField]
  /// What its entry under `providers` in gateway.lua may hold.
  public let settings: [SettingField]
  /// Its default policy: the text of its `policy.lua`.
  public package(set) var policy: PolicySource
  /// Flows that come with the provider, each the text of a flows/NAME.lua. They are there while gateway.lua configures
  /// the provider and the operator's folder has no flow of the same name. Each begins with a session: which flows let
  /// people in is the operator's to decide.
  public package(set) var flows: [PolicySource]
  /// Cases that come with the provider, the text of a tests/NAME.lua: what holds of its own flows whatever the numbers
  /// of its policy are. `moongate check` plays those that name no other flows, unless the operator's folder has a
  /// tests/NAME.lua. nil for none.
  public package(set) var cases: PolicySource?
  /// The kinds of identifier that it reads or proves.
  public let identifierKinds: [IdentifierKind]
  /// Whether its `submit` hashes secrets: the core then takes a permit of the hashing threads before it charges an
  /// attempt, and answers `busy` where there is none; and it counts a registration before the hash. `StepTools.hasher`
  /// is granted in `submit` either way.
  public let hashesSecrets: Bool
  /// How many different secrets people may choose from, for the guess budget of `moongate check`; nil where that is not
  /// known, as of passwords, or where there is no secret to guess. That people choose evenly is assumed, and said.
  public let secretSpace: Int?
  /// All refusals that it may answer. One that is not here is a fault of the provider: answered 503, logged, given
  /// back, and never a pass. A code provider needs none: its codes are the core's to refuse.
  public let outcomes: [Outcome]
  /// Of a code provider: the reasons for which it may fail to deliver to an identifier. A `DeliveryFault` with a reason
  /// that is not here is an ordinary fault.
  public let deliveryReasons: [DeliveryReason]
  /// What policies may ask about whom it proves: attributes of identifiers, and what its proofs tell beside them.
  public let facts: [FactField]
  /// What the hosted pages show of its steps; nil lets them do with its name.
  public package(set) var words: StepWords?
  /// How the pages show its steps; nil for the usual one of its shape: boxes for a code provider, a form for any other.
  public package(set) var presentation: Presentation?
  /// How the pages for signing in and registering offer it; nil: by a link.
  public package(set) var entrance: Entrance?
  /// The last part of its page's address: `verify` for `/auth/verify`; nil for `/auth/step/NAME`. For `codeEntry` and
  /// `digitPad`.
  public package(set) var page: String?
  /// The provider of which gateway.lua makes this an instance under another name; nil for a provider under its own
  /// name.
  package var instanceOf: ProviderName?
  /// What gateway.lua says that people read as its name; nil where it says nothing.
  package var title: String?
  /// What it is to an account. Not declared: it may keep a factor, and proves identifiers where it names their kinds.
  public let role: ProviderRole
  /// What another site may send back with a person to `/auth/callback/NAME`, by GET or POST; nothing else arrives.
  /// Empty: nobody is sent back. The parameter `state` finds the flow whether it is here or not.
  public let callbackFields: [InputField]
  /// Whether a vendor's servers may call `/auth/hook/NAME`; then it is a `WebhookReceiver`.
  public let receivesWebhooks: Bool
  /// Documents that it publishes as `/.well-known/NAME`; then it is a `WellKnownPublisher`. Routes never see a request
  /// for one of them.
  public let wellKnown: [String]
  /// How often `Provider.maintain(with:)` runs, on one gateway of the installation; nil for a provider that needs no
  /// maintenance. 10 seconds to 30 days.
  public let maintenanceInterval: Duration?
  /// The version of the records that it keeps for accounts: 1 or more. A provider that changes their form counts it up
  /// and reads the older ones in `FullProvider.upgrade(_:from:)`. A gateway refuses a record of a version above this
  /// one.
  public let recordVersion: Int
  /// The version of this library that it was written for. A program refuses to start with one of its future.
  public let sdk: Int

  public init(
    name: ProviderName, beginFields: [InputField], submitFields: [InputField], settings: [SettingField],
    policy: PolicySource,
    flows: [PolicySource] = [], cases: PolicySource? = nil, identifierKinds: [IdentifierKind],
    hashesSecrets: Bool = false, secretSpace: Int? = nil,
    outcomes: [Outcome] = [], deliveryReasons: [DeliveryReason] = [], facts: [FactField] = [],
    words: StepWords? = nil, presentation: Presentation? = nil, entrance: Entrance? = nil, page: String? = nil,
    role: ProviderRole? = nil,
    callbackFields: [InputField] = Self.standardCallbackFields, receivesWebhooks: Bool = false,
    wellKnown: [String] = [],
    recordVersion: Int = 1, maintenanceInterval: Duration? = nil, sdk: Int = SDKVersion.current
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
    self.deliveryReasons = deliveryReasons
    self.facts = facts
    self.words = words
    self.presentation = presentation
    self.entrance = entrance
    self.page = page
    self.role = role ?? (identifierKinds.isEmpty ? .keepsFactor : [.provesIdentifier, .keepsFactor])
    self.callbackFields = callbackFields
    self.receivesWebhooks = receivesWebhooks
    self.wellKnown = wellKnown
    self.recordVersion = recordVersion
    self.maintenanceInterval = maintenanceInterval
    self.sdk = sdk
  }

  /// What an OAuth 2.0 site sends back (RFC 6749 section 4.1.2, RFC 9207 section 2).
  public static let standardCallbackFields = ["code", "state", "iss", "error"].map {
    InputField(name: $0, kind: .text, isRequired: false)
  }

  /// The declared outcome of a reason; nil where it was not declared.
  public func outcome(_ reason: RefusalReason) -> Outcome? { outcomes.first { $0.reason == reason } }

  /// The declared reason of a failed delivery; nil where it was not declared.
  public func deliveryReason(_ reason: RefusalReason) -> DeliveryReason? {
    deliveryReasons.first { $0.reason == reason }
  }
}

/// A Lua file that a provider ships, such as its default policy, and the name by which messages refer to it.
public struct PolicySource: Sendable {
  /// Where its author finds it: `Plugins/PhoneOTP/policy.lua`. A flow has the name of its file:
  /// `Plugins/PIN/flows/pin_set.lua`.
  public let file: String
  /// Lua, UTF-8.
  public let text: String
  /// What the file is called without its folder and its ending: `pin_set`. A flow has this name.
  public let name: String

  public init(file: String, text: String) {
    let last = file.split(separator: "/").last.map(String.init) ?? file
    self.init(file: file, text: text, name: last.hasSuffix(".lua") ? String(last.dropLast(4)) : last)
  }

  /// A source under another name than its file's.
  package init(file: String, text: String, name: String) {
    self.file = file
    self.text = text
    self.name = name
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
    /// A JSON object of at most 64 KiB, such as the answer of a browser's credential API. A client may send the object
    /// itself or its text; the provider receives the text. For `submit`, with the presentation `.ceremony`.
    case json
    /// One of `choices`, by its value. Only in a round: what there is to choose depends on the account.
    case choice
  }

  public let name: String
  public let kind: Kind
  /// How many characters the value has, where the number is fixed. People group codes by spaces and hyphens: of
  /// `digits` they do not count, and a `text` fits with them or without. Of every other kind each character counts. The
  /// provider receives the value as it was typed.
  public let length: Int?
  public let isRequired: Bool
  /// What a field of kind `choice` may hold: 1 to 64 of them; nil for every other kind.
  public let choices: [InputChoice]?

  public init(name: String, kind: Kind, length: Int? = nil, isRequired: Bool = true, choices: [InputChoice]? = nil) {
    self.name = name
    self.kind = kind
    self.length = length
    self.isRequired = isRequired
    self.choices = choices
  }
}

/// One value of a field of kind `choice`.
public struct InputChoice: Sendable, Equatable, Codable {
  /// What the client sends.
  public let value: String
  /// What the person reads: plain text.
  public let label: String

  public init(value: String, label: String) {
    self.value = value
    self.label = label
  }
}

/// Something that policies may ask about. With `of: .phone` and the name `country` a policy reads `f.phone.country`:
/// the identifier's attribute of this name, or nil.
///
/// Once the provider's step has passed, policies read the fact as `f.providers.NAME.country` for the rest of the flow,
/// whatever identifier comes next, and as `f.NAME.country` unless NAME is one of the gateway's own groups, such as
/// `account`. Its value is `Proof.facts`, else the attribute. A provider without identifiers declares facts that have
/// only this place.
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
  /// Which identifiers carry it; nil: those of the first kind that the provider declares, or none where it declares no
  /// kind.
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
  /// What the account page calls the links to its flows `NAME_set`, `NAME_change` and `NAME_disable`, by purpose; one
  /// that is not here is called "Set up", "Change" or "Turn off".
  public let links: [StepPurpose: String]
  /// What people call it where it is one of several: "Code by SMS". nil: its title.
  public package(set) var name: String?
  /// What the presentation says in other words for this provider, by the names of the page's words (`en.words`):
  /// `["enter_passcode": "Enter your vault code"]`.
  public let page: [String: String]
  /// What the owner of an account is told by a message when the factor is set, changed or disabled; what is not here is
  /// said with the title.
  public let notices: [StepPurpose: FactorNotice]
  /// All of that, what its steps show and the sentences of its outcomes in other languages: by the language's tag (BCP
  /// 47, `hi`), then by the English text. What is not here is shown in English; what an operator's own words say goes
  /// first.
  public let translations: [String: [String: String]]

  public init(
    title: String, name: String? = nil, instruction: String = "", labels: [String: String] = [:],
    links: [StepPurpose: String] = [:],
    page: [String: String] = [:], notices: [StepPurpose: FactorNotice] = [:],
    translations: [String: [String: String]] = [:]
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

  /// The same with the translations of files that a target embeds, such as words/hi.words: a line each,
  /// `English text = translation`. Lines that are empty or begin with # say nothing.
  public init(
    title: String, name: String? = nil, instruction: String = "", labels: [String: String] = [:],
    links: [StepPurpose: String] = [:],
    page: [String: String] = [:], notices: [StepPurpose: FactorNotice] = [:],
    translations files: [(tag: String, file: [UInt8])]
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

  /// The translations of a language, by the English text: those of the very tag, else of its language (`hi` for
  /// `hi-IN`).
  public func translations(in tag: String) -> [String: String] {
    translations[tag] ?? translations[String(tag.prefix { $0 != "-" })] ?? [:]
  }
}
