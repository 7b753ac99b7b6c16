/// A provider that verifies by itself: a PIN, a password, another identity provider.
///
/// The core charges each `submit` against the policy's limits before it calls, settles it by the answer, and counts a
/// thrown error as a fault: refunded, answered 503, never a pass.
public protocol FullProvider: Provider {
  /// Reads the identifier that `begin` names, where it names one (the email beside a password): limits count by it.
  /// - Throws: what is wrong with it, and in which field.
  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier?

  /// Whether what was sent can be judged at all. Called before anything is charged or compared, for `submit`, and for a
  /// `begin` that holds all that `submit` asks for; may be called more than once. A PIN that is too weak is refused
  /// here, so that its refusal says nothing about the current PIN or a code beside it.
  /// - Throws: what is wrong with it, and in which field.
  func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem)

  /// Opens the step.
  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer

  /// Judges what the person sent. Must be free of effects where it answers `refused`.
  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer

  /// Brings a record of an older version into today's form. Called before the record is handed over, with records of
  /// versions below `ProviderDescriptor.recordVersion`. The result is stored when a step with it has passed.
  ///
  /// Convert, and do nothing else: no hash and no call to another site. The time would tell a stranger who is
  /// registered.
  /// - Throws: where the record cannot be read. The step is then answered 503.
  func upgrade(_ record: [UInt8], from version: Int) async throws -> [UInt8]

  /// What the record holds, as the account page lists it: for a provider with the role `.keepsSeveral`. At most 64
  /// items are listed.
  /// - Throws: where the record cannot be read. The page then lists nothing.
  func holdings(in record: [UInt8]) throws -> [HeldItem]
}

extension FullProvider {
  /// Nothing is refused before it is judged.
  public func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) {}

  /// There are no older versions.
  public func upgrade(_ record: [UInt8], from version: Int) async throws -> [UInt8] {
    throw RecordUpgradeMissing(version: version)
  }

  /// Nothing is listed.
  public func holdings(in record: [UInt8]) throws -> [HeldItem] { [] }

  /// None: the flow's account is meant.
  public func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier? { nil }
}

/// One of several things that a provider keeps for an account, as its owner sees it. No secret is in it.
///
/// A provider that declares `HeldItem.field` among its begin fields lets people change or remove this very item: the
/// account page then has a link beside it to the flows with the purposes `change` and `disable`, and `begin` is given
/// its `id`. The step proves who asks, as without it.
public struct HeldItem: Sendable, Equatable {
  /// The begin field that names one item.
  public static let field = InputField(name: "item", kind: .text, isRequired: false)

  /// Which of the provider's items it is.
  public let id: String
  /// What the owner calls it: plain text.
  public let name: String
  /// More of it, such as the kind of device, a few words each; translated where the provider's words have them.
  public let details: [String]
  /// Milliseconds since the Unix epoch; nil where it is not known.
  public let addedAt: Int64?
  /// The same; nil where it was not used yet.
  public let usedAt: Int64?

  public init(id: String, name: String, details: [String] = [], addedAt: Int64? = nil, usedAt: Int64? = nil) {
    self.id = id
    self.name = name
    self.details = details
    self.addedAt = addedAt
    self.usedAt = usedAt
  }
}

/// A provider has a record of an older version and does not say how to read it.
public struct RecordUpgradeMissing: Error, Sendable, CustomStringConvertible {
  public let version: Int

  public init(version: Int) { self.version = version }

  public var description: String { "there is no `upgrade` for a record of version \(version)" }
}

/// What a full provider is given: enough to judge, nothing to sign in with.
public struct StepContext: Sendable {
  /// The name of the flow: `login`, `step_up`, … An operator chooses it, so nothing should depend on it.
  public let flow: String
  /// What completing the flow does: `reset` where a forgotten secret is replaced, `register` where an account is
  /// created.
  public let flowPurpose: FlowPurposeKind
  /// What the step is for.
  public let purpose: StepPurpose
  /// The account of the flow, or the one that the identifier of `begin` opens; nil where there is none (yet). A
  /// provider whose policy conceals does the same work, and takes the same time, without one.
  public var account: StepAccount?
  /// What `readIdentifier` made of `begin`'s input, where it made something.
  public package(set) var identifier: Identifier?
  /// What the provider's last answer in this step asked to keep. Sealed by the core while it waits.
  public let state: [UInt8]
  /// Milliseconds since the Unix epoch, by the core's clock.
  public let now: Int64
  /// Where a site that this step leads to sends the person back; nil where the step was not begun over HTTP.
  public let callback: Callback?
  /// The fields of this round: in `begin` the declared ones, in `submit` those of the last `ask`, or, after a
  /// `redirect`, the callback parameters. Empty where nothing was asked for, as after a `wait`.
  public var asked: [InputField]
  public var tools: StepTools

  /// - Parameters:
  ///   - flowPurpose: nil for the one that goes with the step's purpose.
  ///   - asked: nothing, unless told otherwise.
  public init(
    flow: String, flowPurpose: FlowPurposeKind? = nil, purpose: StepPurpose, account: StepAccount?,
    identifier: Identifier?, state: [UInt8],
    now: Int64, callback: Callback?, asked: [InputField] = [], tools: StepTools
  ) {
    self.flow = flow
    self.flowPurpose = flowPurpose ?? FlowPurposeKind(of: purpose)
    self.purpose = purpose
    self.account = account
    self.identifier = identifier
    self.state = state
    self.now = now
    self.callback = callback
    self.asked = asked
    self.tools = tools
  }
}

/// What a flow is for: the values of `purpose` in flows/NAME.lua.
public enum FlowPurposeKind: String, Sendable, Codable, CaseIterable {
  /// Signs a person in, or creates an account where the flow allows it.
  case signIn = "sign_in"
  /// Creates an account.
  case register
  /// Proves once more who holds a session.
  case stepUp = "step_up"
  /// Verifies an identifier that the account claims.
  case verify
  /// Replaces an identifier, or proves a factor and replaces it.
  case change
  /// Adds an identifier, which may join two accounts.
  case join
  /// Creates a factor where the account has none.
  case set
  /// Proves a factor and removes it.
  case disable
  /// Replaces a forgotten factor, after something else was proved.
  case reset
  /// Proves a factor within a session.
  case unlock

  /// The flow in which a step of this purpose usually stands.
  public init(of purpose: StepPurpose) {
    self =
      switch purpose {
      case .prove: .signIn
      case .set: .set
      case .change: .change
      case .disable: .disable
      }
  }
}

/// What a step of a full provider is to do. The core derives it from the flow.
public enum StepPurpose: String, Sendable, Codable {
  /// Prove a secret that the account has, or an identity elsewhere.
  case prove
  /// Make a secret where there is none, or in place of one that is forgotten; the flow has proved enough before.
  case set
  /// Prove the old secret and replace it, in one try.
  case change
  /// Prove the secret and remove it, in one try.
  case disable
}

/// Where another site sends the person back to.
public struct Callback: Sendable, Equatable {
  /// The address to register with that site, exactly: `https://example.com/auth/callback/google_oauth`.
  public let address: String
  /// To be handed back unchanged with the person. Finds the flow, and works only in the browser that began it.
  public let state: String

  public init(address: String, state: String) {
    self.address = address
    self.state = state
  }
}

/// The account of a step as its provider may see it.
public struct StepAccount: Sendable {
  public let id: String
  /// This provider's own record for the account, sealed at rest by the core; nil where there is none.
  public let record: [UInt8]?
  /// What the account holds, verified or only claimed: for rules such as "no PIN out of your own number".
  public let identifiers: [Identifier]
  /// First and last name, where they are known.
  public let names: [String]

  public init(id: String, record: [UInt8]?, identifiers: [Identifier] = [], names: [String] = []) {
    self.id = id
    self.record = record
    self.identifiers = identifiers
    self.names = names
  }
}

/// What a full provider answers. A refusal is a value; a fault is a thrown error.
public enum StepAnswer: Sendable {
  /// Ask the person (again) for these fields, and show them something beside; `state` comes back with the next call.
  case ask([InputField], state: [UInt8], showing: [Shown] = [])
  /// Send the person to another site; `state` comes back with the next call.
  case redirect(to: String, state: [UInt8])
  /// The person decides elsewhere, such as in an app on their phone. The core calls `submit` again without fields, at
  /// the earliest after `poll`, which is from 1 to 60 seconds; `state` comes back with it. A further `wait` is not
  /// counted. The flow's lifetime bounds the whole wait, and `refused` ends it.
  case wait(poll: Duration, state: [UInt8], showing: [Shown] = [])
  /// It is they.
  case proved(Proof)
  /// Not accepted, for a reason that the descriptor declares among its outcomes; counted as a failure, unless the
  /// outcome says otherwise.
  case refused(RefusalReason)
  /// The same, and the step asks the fields of another round, such as the first question again. Written
  /// `.refused(reason, then: round)`.
  case refusedAndAsked(RefusalReason, Round)
  /// Cannot be read: 422, not counted.
  case malformed(InputProblem)

  /// One round of questions.
  public struct Round: Sendable {
    public let fields: [InputField]
    public let state: [UInt8]
    public let shown: [Shown]

    /// - Parameters:
    ///   - state: comes back with the next call.
    ///   - showing: something for the person to see beside the fields.
    public static func ask(_ fields: [InputField], state: [UInt8], showing shown: [Shown] = []) -> Round {
      Round(fields: fields, state: state, shown: shown)
    }
  }

  /// How long a step may wait from one poll to the next.
  public static let pollIntervals: ClosedRange<Duration> = .seconds(1)...(.seconds(60))

  /// Not accepted, and what to ask next. Counted as `refused` is.
  public static func refused(_ reason: RefusalReason, then next: Round) -> StepAnswer { .refusedAndAsked(reason, next) }
}

/// Something for the person to see beside the fields of a step. It goes to the flow's own browser or app and nowhere
/// else: the core seals it while the flow waits, and neither logs nor audits it.
public enum Shown: Sendable, Equatable, Codable {
  /// A line of plain text.
  case text(String)
  /// To be copied by the person, such as an authenticator app's key: monospaced.
  case secret(String)
  /// A text that the page draws as a QR code; the API gives the text.
  case qr(String)
  /// Lines to be kept, such as recovery codes.
  case list([String])
  /// A call of the browser's or platform's credential API. `options` is the JSON text of a
  /// `PublicKeyCredentialCreationOptionsJSON` or a `PublicKeyCredentialRequestOptionsJSON` (Web Authentication, Level
  /// 3, section 5.1) of at most 32 KiB. The same round asks for one field of kind `json`, which takes the answer
  /// (`PublicKeyCredential.toJSON()`). For providers with the presentation `.ceremony`.
  case ceremony(CeremonyCall, options: String)
}

/// The calls of the credential API.
public enum CeremonyCall: String, Sendable, Codable {
  /// `navigator.credentials.create()`: makes a credential.
  case create
  /// `navigator.credentials.get()`: proves a credential that was made before.
  case get
}

/// What a passed step establishes.
public struct Proof: Sendable {
  /// What becomes of the provider's record of the account.
  public enum Record: Sendable {
    /// It stays as it is.
    case keep
    /// This takes its place, when the flow completes. In a step of the purpose `prove` it is the same secret in a newer
    /// form, such as a hash at today's cost, and gives way where the record was changed meanwhile; what sets or changes
    /// a secret answers `replaceOnce`.
    case replace([UInt8])
    /// The same, for a proof that may be used once, such as a code of an authenticator app: of all flows that were
    /// judged by the same record one completes, and the others are refused.
    case replaceOnce([UInt8])
    /// There is none any more. As with `replaceOnce`, what it was judged by must still be there: a code that removes it
    /// does nothing else.
    case remove
  }

  /// What was proved to be theirs, the most specific first (a federated identity before its verified email).
  public package(set) var proved: [Identifier]
  /// What another site has verified at some time and does not vouch for today, such as an address at a domain that is
  /// not the site's own. A new account holds it verified; an account that has it already is not joined by it before it
  /// has proved something of its own.
  public package(set) var attested: [Identifier]
  /// What they say is theirs and nobody has proved: held unverified, opens nothing.
  public package(set) var claimed: [Identifier]
  public package(set) var firstName: String?
  public package(set) var lastName: String?
  /// What policies may ask about this proof for the rest of the flow, by the names of the descriptor's `facts`:
  /// `f.providers.NAME.FACT`. Undeclared names are dropped. Each value has at most 300 bytes; a longer one is a fault.
  public package(set) var facts: [String: String]
  public package(set) var record: Record
  /// Whether two factors were proved at once, such as a device and the fingerprint that unlocks it. A session with such
  /// a step has assurance level 2.
  public package(set) var isMultiFactor: Bool

  public init(
    proved: [Identifier] = [], attested: [Identifier] = [], claimed: [Identifier] = [], firstName: String? = nil,
    lastName: String? = nil,
    facts: [String: String] = [:], record: Record = .keep, isMultiFactor: Bool = false
  ) {
    self.proved = proved
    self.attested = attested
    self.claimed = claimed
    self.firstName = firstName
    self.lastName = lastName
    self.facts = facts
    self.record = record
    self.isMultiFactor = isMultiFactor
  }
}
