/// A kind of step: phone code, email code, PIN, …
///
/// There are two shapes. A ``CodeProvider`` says only how an identifier is read and how a code is delivered; the core
/// makes, keeps, counts and compares the codes. A ``FullProvider`` verifies by itself; the core still charges each try
/// before it is asked. Neither can name a session or mark a step as passed: only the core can.
public protocol Provider: Sendable {
  /// What it is and what it asks for. The same at every call.
  var descriptor: ProviderDescriptor { get }
}

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

  public init(
    name: ProviderName, beginFields: [InputField], submitFields: [InputField], settings: [SettingField], policy: PolicySource,
    identifierKinds: [IdentifierKind], hashesSecrets: Bool = false, secretSpace: Int? = nil
  ) {
    self.name = name
    self.beginFields = beginFields
    self.submitFields = submitFields
    self.settings = settings
    self.policy = policy
    self.identifierKinds = identifierKinds
    self.hashesSecrets = hashesSecrets
    self.secretSpace = secretSpace
  }
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

/// One field of a provider's entry in gateway.lua.
public struct SettingField: Sendable, Equatable {
  public enum Kind: Sendable, Equatable {
    case text
    /// From `env` or `file` only; never prints.
    case secret
    /// A way for messages to leave, such as `outbox()`.
    case messages(MessageChannel)
  }

  public let name: String
  public let kind: Kind
  public let isRequired: Bool
  /// One sentence for the operator.
  public let help: String

  public init(name: String, kind: Kind, isRequired: Bool, help: String) {
    self.name = name
    self.kind = kind
    self.isRequired = isRequired
    self.help = help
  }
}

/// A provider whose proof is a code that reached the person. About thirty lines.
public protocol CodeProvider: Provider {
  /// Reads the identifier that the code is to be sent to, in its canonical spelling.
  /// - Throws: what is wrong with it, and in which field.
  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier

  /// Sends a code. Called after the try was charged; a fault is not charged to the person.
  func deliver(_ code: CodeMessage, to identifier: Identifier, by messenger: any Messenger) async throws(DeliveryFault)
}

/// A code on its way out.
public struct CodeMessage: Sendable {
  public let code: String
  /// The policy's `message` with its parts filled in.
  public let text: String
  /// The last line that binds an SMS to our pages (`@host #code`), for providers that send SMS.
  public let domainBoundLine: String
  /// What messages call us.
  public let service: String

  public init(code: String, text: String, domainBoundLine: String, service: String) {
    self.code = code
    self.text = text
    self.domainBoundLine = domainBoundLine
    self.service = service
  }
}
