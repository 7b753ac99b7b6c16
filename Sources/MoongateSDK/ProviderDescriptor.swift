/// The declaration of a provider.
public struct ProviderDescriptor: Sendable {
  public package(set) var name: ProviderName
  /// The fields of `begin`.
  public package(set) var beginFields: [InputField]
  /// The fields of `submit`. For a code provider, the core sets the length of the `code` field from the policy.
  public let submitFields: [InputField]
  /// The settings of its entry under `providers` in gateway.lua.
  public let settings: [SettingField]
  /// Its default policy: the text of its `policy.lua`.
  public package(set) var policy: PolicySource
  /// Flows that come with the provider, each the text of a flows/NAME.lua. They exist while gateway.lua configures the
  /// provider, unless the operator's folder has a flow of the same name. Each must begin with a session: only the
  /// operator decides which flows sign users in.
  public package(set) var flows: [PolicySource]
  /// Test cases that come with the provider, the text of a tests/NAME.lua. They must hold for its own flows with any
  /// numbers in its policy. `moongate check` runs the cases that name no other flows, unless the operator's folder has
  /// a tests/NAME.lua. nil for none.
  public package(set) var cases: PolicySource?
  /// The kinds of identifier that it reads or proves.
  public package(set) var identifierKinds: [IdentifierKind]
  /// The kinds that an operator may choose for it by `identify_by` in its entry in gateway.lua, such as a user name;
  /// empty for a provider without this setting. `identifierKinds` are its default. Input fields of a kind that was not
  /// chosen never reach the provider, and neither does a field of `begin` that is not declared: it reads those of all
  /// kinds here, a name by `InputField.userName`.
  public let choosableKinds: [IdentifierKind]
  /// Whether its `submit` hashes secrets. If true, the core acquires a permit for the hashing threads before it charges
  /// an attempt, answers `busy` if none is free, and counts a registration before the hash. `StepTools.hasher` is
  /// available in `submit` either way.
  public let hashesSecrets: Bool
  /// The number of different secrets that users can choose from, for the guess budget of `moongate check`; nil if
  /// unknown, as for passwords, or if there is no secret to guess. The budget assumes that users choose evenly, and
  /// says so.
  public let secretSpace: Int?
  /// All refusals that it may answer. An undeclared one is a fault of the provider: answered with 503, logged,
  /// refunded, and never passed. A code provider needs none, because the core refuses its codes.
  public let outcomes: [Outcome]
  /// For a code provider: the reasons why it may fail to deliver to an identifier. A `DeliveryFault` with an undeclared
  /// reason is an ordinary fault.
  public let deliveryReasons: [DeliveryReason]
  /// The facts that policies can read: attributes of identifiers, and facts of proofs.
  public package(set) var facts: [FactField]
  /// The texts that the hosted pages show for its steps; nil to use its name.
  public package(set) var words: StepWords?
  /// How the pages show its steps; nil for the default: boxes for a code provider, a form for any other.
  public package(set) var presentation: Presentation?
  /// How the sign-in and registration pages offer it; nil: with a link.
  public package(set) var entrance: Entrance?
  /// The last component of its page's path: `verify` for `/auth/verify`; nil for `/auth/step/NAME`. For `codeEntry` and
  /// `digitPad`.
  public package(set) var page: String?
  /// The provider of which gateway.lua declares this instance under another name; nil for a provider under its own
  /// name.
  package var instanceOf: ProviderName?
  /// The display name that gateway.lua sets; nil if it sets none.
  package var title: String?
  /// What it does for an account. By default, it may keep a factor, and proves identifiers if it declares kinds of
  /// them.
  public let role: ProviderRole
  /// Whether a proof of it may prove two factors at once (`Proof.isMultiFactor`), such as a device and the fingerprint
  /// that unlocks it. A proof that says so without this declaration is a fault of the provider.
  public let mayProveSeveralFactors: Bool
  /// Whether it passes what another site says to `StepTools.identity`. Only then may its policy have the function
  /// `identity`.
  public let mapsClaims: Bool
  /// Whether it can ask its site again about an identity. The provider must be `Rechecking` and prove federated
  /// identities. Its entry in gateway.lua then has the settings `recheck` and `recheck_grace`; the provider reads
  /// whether `recheck` is set.
  public let rechecks: Bool
  /// Whether only instances of it exist, each under a name that the operator chooses: `work = openid { … }`. It is then
  /// a kind of site, of which an installation has none or several.
  public let isKind: Bool
  /// The parameters that another site may send to `/auth/callback/NAME` by GET or POST; all others are dropped. Empty:
  /// the provider has no callback. The parameter `state` always identifies the flow, whether it is listed or not.
  public let callbackFields: [InputField]
  /// Whether a vendor's servers may call `/auth/hook/NAME`. The provider must be a `WebhookReceiver`.
  public let receivesWebhooks: Bool
  /// The documents that it publishes as `/.well-known/NAME`. The provider must be a `WellKnownPublisher`. Routes never
  /// see requests for these documents.
  public let wellKnown: [String]
  /// How often `Provider.maintain(with:)` runs, on one gateway of the installation; nil for a provider without
  /// maintenance. 10 seconds to 30 days.
  public let maintenanceInterval: Duration?
  /// The version of the records that it stores for accounts: 1 or more. If you change their format, increase it and
  /// convert older ones in `FullProvider.upgrade(_:from:)`. A gateway refuses a record of a later version.
  public let recordVersion: Int
  /// The version of this library that it was written for. A program refuses to start with a provider whose version is
  /// not among `SDKVersion.supported`.
  public let sdk: Int

  /// More than five parameters: one for each field.
  public init(
    name: ProviderName, beginFields: [InputField], submitFields: [InputField], settings: [SettingField],
    policy: PolicySource,
    flows: [PolicySource] = [], cases: PolicySource? = nil, identifierKinds: [IdentifierKind],
    choosableKinds: [IdentifierKind] = [],
    hashesSecrets: Bool = false, secretSpace: Int? = nil,
    outcomes: [Outcome] = [], deliveryReasons: [DeliveryReason] = [], facts: [FactField] = [],
    words: StepWords? = nil, presentation: Presentation? = nil, entrance: Entrance? = nil, page: String? = nil,
    role: ProviderRole? = nil, mayProveSeveralFactors: Bool = false, mapsClaims: Bool = false, rechecks: Bool = false,
    isKind: Bool = false,
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
    self.choosableKinds = choosableKinds
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
    self.mayProveSeveralFactors = mayProveSeveralFactors
    self.mapsClaims = mapsClaims
    self.rechecks = rechecks
    self.isKind = isKind
    self.callbackFields = callbackFields
    self.receivesWebhooks = receivesWebhooks
    self.wellKnown = wellKnown
    self.recordVersion = recordVersion
    self.maintenanceInterval = maintenanceInterval
    self.sdk = sdk
  }

  /// The parameters that an OAuth 2.0 site sends back (RFC 6749 section 4.1.2, RFC 9207 section 2).
  public static let standardCallbackFields = ["code", "state", "iss", "error"].map {
    InputField(name: $0, kind: .text, isRequired: false)
  }

  /// The parameters of an OAuth 2.0 response that tell operators why a sign-in failed, and are no secrets: an error
  /// code (RFC 6749 section 4.1.2.1) and the name of the issuer (RFC 9207). They may be logged.
  public static let plainCallbackFields: Set<String> = ["error", "iss"]

  /// The kinds of identifier that lead to an account. A provider of federated identities proves that identity; the
  /// email address that comes with it does not count.
  package var signInKinds: [IdentifierKind] {
    identifierKinds.contains(.federated) ? [.federated] : identifierKinds
  }

  /// The declaration with other kinds of identifier: their fields of `begin`, and the facts and the entrance that
  /// remain.
  /// - Parameter kinds: some of `choosableKinds`.
  package func identifying(by kinds: [IdentifierKind]) -> ProviderDescriptor {
    let standard = beginFields.filter { field in field.identifierKind.map(choosableKinds.contains) ?? false }
    var fields = standard.filter { field in field.identifierKind.map(kinds.contains) ?? false }
    if kinds.contains(.name), !fields.contains(.userName) { fields.insert(.userName, at: 0) }
    var copy = self
    copy.identifierKinds = kinds
    copy.beginFields = fields + beginFields.filter { !standard.contains($0) }
    copy.facts = facts.filter { fact in fact.of.map { kinds.contains($0) || !choosableKinds.contains($0) } ?? true }
    if case .field(let kind, let priority)? = entrance, !kinds.contains(kind) {
      copy.entrance = kinds.first.map { .field(kind: $0, priority: priority) }
    }
    return copy
  }

  /// Whether its answers can be guessed here. An identity that is proved at another site's own page has no secret that
  /// could be guessed here, but one that is proved by a password typed here has.
  public var takesGuesses: Bool {
    !identifierKinds.contains(.federated) || hashesSecrets || submitFields.contains { $0.kind == .password }
  }

  /// The declared outcome for a reason; nil if it is not declared.
  public func outcome(_ reason: RefusalReason) -> Outcome? { outcomes.first { $0.reason == reason } }

  /// The declared delivery reason; nil if it is not declared.
  public func deliveryReason(_ reason: RefusalReason) -> DeliveryReason? {
    deliveryReasons.first { $0.reason == reason }
  }
}

/// A Lua file that a provider ships, such as its default policy, with the name that messages use for it.
public struct PolicySource: Sendable {
  /// The path in the provider's source: `Plugins/PhoneOTP/policy.lua`. The file name of a flow is the flow's name:
  /// `Plugins/PIN/flows/pin_set.lua`.
  public let file: String
  /// Lua source in UTF-8.
  public let text: String
  /// The file name without folder and extension: `pin_set`. A flow has this name.
  public let name: String

  public init(file: String, text: String) {
    let last = file.split(separator: "/").last.map(String.init) ?? file
    self.init(file: file, text: text, name: last.hasSuffix(".lua") ? String(last.dropLast(4)) : last)
  }

  /// A source whose name differs from its file's.
  public init(file: String, text: String, name: String) {
    self.file = file
    self.text = text
    self.name = name
  }
}

/// A field that a step asks the user for.
public struct InputField: Sendable, Equatable, Codable {
  /// What the field takes, which decides how a page shows it and how its text is checked.
  public enum Kind: String, Sendable, Codable {
    /// A code of digits. The provider receives the ASCII digits, however they were typed (``TypedCode``).
    case digits
    case text
    case phone
    case email
    case password
    case region
    /// A JSON object of at most 64 KiB, such as the answer of a browser's credential API. A client may send the object
    /// itself or its text; the provider receives the text. For `submit`, with the presentation `.ceremony`.
    case json
    /// One of `choices`, by its value. Only allowed in a round, because the choices depend on the account.
    case choice
  }

  public let name: String
  public let kind: Kind
  /// The length of the value in characters, if it is fixed. People group codes with spaces and hyphens: in `digits`
  /// these are not counted, and a `text` may match with or without them. In every other kind, all characters count. The
  /// provider receives the value as it was typed.
  public let length: Int?
  public let isRequired: Bool
  /// The choices of a field of kind `choice`, 1 to 64; nil for every other kind.
  public let choices: [InputChoice]?

  public init(name: String, kind: Kind, length: Int? = nil, isRequired: Bool = true, choices: [InputChoice]? = nil) {
    self.name = name
    self.kind = kind
    self.length = length
    self.isRequired = isRequired
    self.choices = choices
  }
}

/// A choice of a field of kind `choice`.
public struct InputChoice: Sendable, Equatable, Codable {
  /// The value that the client sends.
  public let value: String
  /// The label that the user sees, as plain text.
  public let label: String

  public init(value: String, label: String) {
    self.value = value
    self.label = label
  }
}

/// A fact that policies can read. With `of: .phone` and the name `country`, a policy reads `f.phone.country`: the
/// identifier's attribute of this name, or nil.
///
/// Once the provider's step has passed, policies can read the fact as `f.providers.NAME.country` for the rest of the
/// flow, whatever identifier comes next, and as `f.NAME.country` unless NAME is one of the gateway's own groups, such
/// as `account`. Its value is that of `Proof.facts`, otherwise the attribute. Facts of a provider without identifiers
/// can only be read this way.
public struct FactField: Sendable, Equatable {
  /// How the attribute's text is parsed.
  public enum Kind: String, Sendable, Codable {
    case text
    /// A decimal number: `12`, `-0.5`.
    case number
    /// `true` or `false`.
    case flag
  }

  /// In snake case. Must not be one of the core's own names: `e164`, `address`.
  public let name: String
  public let kind: Kind
  /// The kind of identifier that has the attribute; nil: the first kind that the provider declares, or none if it
  /// declares no kind.
  public let of: IdentifierKind?
  /// A few words for editors and the manual: "the number's country in two letters".
  public let help: String

  public init(name: String, kind: Kind, of: IdentifierKind? = nil, help: String) {
    self.name = name
    self.kind = kind
    self.of = of
    self.help = help
  }
}

/// The notice to the owner of an account when a factor was changed.
public struct FactorNotice: Sendable, Equatable, Codable {
  /// The subject of an email, without the service's name: "Passcode set".
  public let subject: String
  /// What happened, as a sentence without a full stop: "A passcode was set for your account".
  public let event: String

  public init(subject: String, event: String) {
    self.subject = subject
    self.event = event
  }
}

/// The texts that the hosted pages show for a step. Plain text: pages escape it, so do not use HTML.
public struct StepWords: Sendable, Equatable, Codable {
  /// The heading: "Your authenticator app".
  public let title: String
  /// One or two sentences that tell the user what to do.
  public let instruction: String
  /// The labels of fields, by field name. The default label is the field's name.
  public let labels: [String: String]
  /// The account page's labels for the links to the flows `NAME_set`, `NAME_change` and `NAME_disable`, by purpose. The
  /// defaults are "Set up", "Change" and "Turn off".
  public let links: [StepPurpose: String]
  /// The name in a list of sign-in methods: "Code by SMS". nil: its title.
  public package(set) var name: String?
  /// Replacements for texts of the presentation's page, by the names in the page's words (`en.words`):
  /// `["enter_passcode": "Enter your vault code"]`.
  public let page: [String: String]
  /// The notices to the owner of an account when the factor is set, changed or disabled. The defaults use the title.
  public let notices: [StepPurpose: FactorNotice]
  /// Translations of all of these texts, of what its steps show, and of the sentences of its outcomes: by the
  /// language's BCP 47 tag (`hi`), then by the English text. Missing texts are shown in English. An operator's own
  /// words take precedence.
  public let translations: [String: [String: String]]

  /// More than five parameters: one for each field.
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

  /// More than five parameters: one for each field.
  /// Creates words with the translations of embedded files, such as words/hi.words, with one `English text =
  /// translation` per line. Empty lines and lines that begin with # are ignored.
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

  /// Parses the lines of a words file into translations by English text.
  public static func translations(in file: [UInt8]) -> [String: String] {
    let lines = String(decoding: file, as: UTF8.self).split(whereSeparator: \.isNewline).filter { !$0.hasPrefix("#") }
    let pairs = lines.compactMap { line -> (String, String)? in
      let parts = line.split(separator: " = ", maxSplits: 1, omittingEmptySubsequences: false)
      return parts.count == 2 ? (String(parts[0]), String(parts[1])) : nil
    }
    return Dictionary(pairs) { first, _ in first }
  }

  /// The translations for a language, by English text: those of the exact tag, otherwise of its language (`hi` for
  /// `hi-IN`).
  public func translations(in tag: String) -> [String: String] {
    translations[tag] ?? translations[String(tag.prefix { $0 != "-" })] ?? [:]
  }
}
