/// A provider that verifies by itself: a PIN, a password, another identity provider.
///
/// The core charges each `submit` against the policy's limits before it calls, settles it by the answer, and counts a
/// thrown error as a fault: refunded, answered 503, never a pass.
public protocol FullProvider: Provider {
  /// Reads the identifier that `begin` names, where it names one (the email beside a password): limits count by it.
  /// - Throws: what is wrong with it, and in which field.
  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier?

  /// Opens the step.
  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer

  /// Judges what the person sent. Must be free of effects where it answers `refused`.
  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer
}

extension FullProvider {
  /// None: the flow's account is meant.
  public func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier? { nil }
}

/// What a full provider is given: enough to judge, nothing to sign in with.
public struct StepContext: Sendable {
  /// The name of the flow: `login`, `step_up`, …
  public let flow: String
  /// The account of the flow, where there is one: its id and what this provider stored for it.
  public let account: StepAccount?
  /// What the provider's last answer in this step asked to keep.
  public let state: [UInt8]
  /// Milliseconds since the Unix epoch, by the core's clock.
  public let now: Int64
  /// Bytes from the system's generator (or a test's).
  public let randomBytes: @Sendable (_ count: Int) -> [UInt8]
  public let messenger: (any Messenger)?

  public init(
    flow: String, account: StepAccount?, state: [UInt8], now: Int64, randomBytes: @escaping @Sendable (Int) -> [UInt8],
    messenger: (any Messenger)?
  ) {
    self.flow = flow
    self.account = account
    self.state = state
    self.now = now
    self.randomBytes = randomBytes
    self.messenger = messenger
  }
}

/// The account of a step as its provider may see it.
public struct StepAccount: Sendable {
  public let id: String
  /// This provider's own record for the account, sealed at rest by the core; nil where there is none.
  public let record: [UInt8]?

  public init(id: String, record: [UInt8]?) {
    self.id = id
    self.record = record
  }
}

/// What a full provider answers. A refusal is a value; a fault is a thrown error.
public enum StepAnswer: Sendable {
  /// Ask the person (again) for these fields; `state` comes back with the next call.
  case ask([InputField], state: [UInt8])
  /// Send the person to another site; `state` comes back with the next call.
  case redirect(to: String, state: [UInt8])
  /// It is they. The identifier is what was proved, where the step proves one; `record` replaces the account's record.
  case proved(Identifier?, record: [UInt8]?)
  /// Not accepted: counted as a failure.
  case refused(RefusalReason)
  /// Cannot be read: 422, not counted.
  case malformed(InputProblem)
}

/// Why a full provider refused: the codes that the API knows.
public enum RefusalReason: String, Sendable {
  case invalidCode = "invalid_code"
  case invalidPIN = "invalid_pin"
  case invalidPassword = "invalid_password"
  case oauthFailed = "oauth_failed"
  case oauthCancelled = "oauth_cancelled"
}
