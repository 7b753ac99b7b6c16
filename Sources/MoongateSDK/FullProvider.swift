/// A provider that verifies by itself: a PIN, a password, another identity provider.
///
/// The core charges each `submit` against the policy's limits before it calls, settles it by the answer, and counts a
/// thrown error as a fault: refunded, answered 503, never a pass.
public protocol FullProvider: Provider {
  /// Reads the identifier that `begin` names, where it names one (the email beside a password): limits count by it.
  /// - Throws: what is wrong with it, and in which field.
  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier?

  /// Whether what was sent can be judged at all. Called before anything is charged or compared, for `submit`, and for a
  /// `begin` that holds all that `submit` asks for; may be called more than once. A PIN that is too weak is refused here, so that its refusal
  /// says nothing about the current PIN or a code beside it.
  /// - Throws: what is wrong with it, and in which field.
  func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem)

  /// Opens the step.
  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer

  /// Judges what the person sent. Must be free of effects where it answers `refused`.
  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer
}

extension FullProvider {
  /// Nothing is refused before it is judged.
  public func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) {}

  /// None: the flow's account is meant.
  public func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier? { nil }
}

/// What a full provider is given: enough to judge, nothing to sign in with.
public struct StepContext: Sendable {
  /// The name of the flow: `login`, `step_up`, … An operator chooses it, so nothing should depend on it.
  public let flow: String
  /// What completing the flow does: `reset` where a forgotten secret is replaced, `register` where an account is created.
  public let flowPurpose: FlowPurposeKind
  /// What the step is for.
  public let purpose: StepPurpose
  /// The account of the flow, or the one that the identifier of `begin` opens; nil where there is none (yet). A provider
  /// whose policy conceals does the same work, and takes the same time, without one.
  public var account: StepAccount?
  /// What `readIdentifier` made of `begin`'s input, where it made something.
  public let identifier: Identifier?
  /// What the provider's last answer in this step asked to keep. Sealed by the core while it waits.
  public let state: [UInt8]
  /// Milliseconds since the Unix epoch, by the core's clock.
  public let now: Int64
  /// Where a site that this step leads to sends the person back; nil where the step was not begun over HTTP.
  public let callback: Callback?
  public var tools: StepTools

  /// - Parameter flowPurpose: nil for the one that goes with the step's purpose.
  public init(
    flow: String, flowPurpose: FlowPurposeKind? = nil, purpose: StepPurpose, account: StepAccount?, identifier: Identifier?, state: [UInt8],
    now: Int64, callback: Callback?, tools: StepTools
  ) {
    self.flow = flow
    self.flowPurpose = flowPurpose ?? FlowPurposeKind(of: purpose)
    self.purpose = purpose
    self.account = account
    self.identifier = identifier
    self.state = state
    self.now = now
    self.callback = callback
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
  /// It is they.
  case proved(Proof)
  /// Not accepted, for a reason that the descriptor declares among its outcomes; counted as a failure, unless the outcome says otherwise.
  case refused(RefusalReason)
  /// The same, and the step goes on with another round, such as back to the first question: written `.refused(reason, then: round)`.
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

  /// Not accepted, and what to ask next. Counted as `refused` is.
  public static func refused(_ reason: RefusalReason, then next: Round) -> StepAnswer { .refusedAndAsked(reason, next) }
}

/// Something for the person to see beside the fields of a step. It goes to the flow's own browser or app and nowhere else: the core seals
/// it while the flow waits, and neither logs nor audits it.
public enum Shown: Sendable, Equatable, Codable {
  /// A line of plain text.
  case text(String)
  /// To be copied by the person, such as an authenticator app's key: monospaced.
  case secret(String)
  /// A text that the page draws as a QR code; the API gives the text.
  case qr(String)
  /// Lines to be kept, such as recovery codes.
  case list([String])
}

/// What a passed step establishes.
public struct Proof: Sendable {
  /// What becomes of the provider's record of the account.
  public enum Record: Sendable {
    /// It stays as it is.
    case keep
    /// This takes its place, when the flow completes. In a step of the purpose `prove` it is the same secret in a newer form, such as a hash at
    /// today's cost, and gives way where the record was changed meanwhile; what sets or changes a secret answers `replaceOnce`.
    case replace([UInt8])
    /// The same, for a proof that may be used once, such as a code of an authenticator app: of all flows that were judged by the same record
    /// one completes, and the others are refused.
    case replaceOnce([UInt8])
    /// There is none any more. As with `replaceOnce`, what it was judged by must still be there: a code that removes it does nothing else.
    case remove
  }

  /// What was proved to be theirs, the most specific first (a federated identity before its verified email).
  public let proved: [Identifier]
  /// What another site has verified at some time and does not vouch for today, such as an address at a domain that is not the site's own. A new
  /// account holds it verified; an account that has it already is not joined by it before it has proved something of its own.
  public let attested: [Identifier]
  /// What they say is theirs and nobody has proved: held unverified, opens nothing.
  public let claimed: [Identifier]
  public let firstName: String?
  public let lastName: String?
  public let record: Record

  public init(
    proved: [Identifier] = [], attested: [Identifier] = [], claimed: [Identifier] = [], firstName: String? = nil, lastName: String? = nil,
    record: Record = .keep
  ) {
    self.proved = proved
    self.attested = attested
    self.claimed = claimed
    self.firstName = firstName
    self.lastName = lastName
    self.record = record
  }
}
