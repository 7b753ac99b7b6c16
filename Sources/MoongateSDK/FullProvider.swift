/// A provider that verifies by itself: a PIN, a password, another identity provider.
///
/// The core charges each `submit` against the policy's limits before it calls the provider, and settles the attempt by
/// the answer. A thrown error is a fault: the attempt is refunded, the client gets 503, and the step never passes.
public protocol FullProvider: Provider {
  /// Reads the identifier that `begin` names, if it names one (such as the email address beside a password). Limits
  /// count by it. One of the kind `federated`, such as a user name at a directory, leads to no account: it only counts,
  /// and must differ from every identity that the provider proves.
  /// - Throws: the problem and its field.
  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier?

  /// Checks whether the input can be judged. Called before anything is charged or compared, for `submit` and for
  /// a `begin` that holds everything that `submit` asks for. May be called more than once. A PIN that is too weak is
  /// refused here, so that the refusal reveals nothing about the current PIN or a code beside it.
  /// - Throws: the problem and its field.
  func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem)

  /// Opens the step.
  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer

  /// Judges what the client sent. Must have no side effects if it answers `refused`.
  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer

  /// Converts a record of an older version to the current format. Called with records of versions below
  /// `ProviderDescriptor.recordVersion` before they are passed to other methods. The result is stored once a step with
  /// it has passed.
  ///
  /// Only convert: do not hash, and do not call another site. The time would reveal who is registered.
  /// - Throws: if the record cannot be read. The step is then answered with 503.
  func upgrade(_ record: [UInt8], from version: Int) async throws -> [UInt8]

  /// The contents of the record as the account page lists them, for a provider with the role `.keepsSeveral`. At most
  /// 64 items are listed.
  /// - Throws: if the record cannot be read. The page then lists nothing.
  func holdings(in record: [UInt8]) throws -> [HeldItem]
}

extension FullProvider {
  /// Refuses nothing before judgement.
  public func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) {}

  /// Throws, because there are no older versions by default.
  public func upgrade(_ record: [UInt8], from version: Int) async throws -> [UInt8] {
    throw RecordUpgradeMissing(version: version)
  }

  /// Lists nothing.
  public func holdings(in record: [UInt8]) throws -> [HeldItem] { [] }

  /// Reads no identifier: the step is about the flow's account.
  public func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier? { nil }
}

/// One of several items that a provider stores for an account, as its owner sees it. Must not contain a secret.
///
/// A provider that declares `HeldItem.field` among its begin fields lets users change or remove this particular item:
/// the account page links it to the flows with the purposes `change` and `disable`, and `begin` receives its `id`. The
/// step authenticates the user as it does without an item.
public struct HeldItem: Sendable, Equatable {
  /// The begin field that names an item.
  public static let field = InputField(name: "item", kind: .text, isRequired: false)

  /// The item's ID within the provider.
  public let id: String
  /// The name for the owner, as plain text.
  public let name: String
  /// Further details, such as the kind of device, a few words each. Translated if the provider's words contain them.
  public let details: [String]
  /// Milliseconds since the Unix epoch; nil if unknown.
  public let addedAt: Int64?
  /// Milliseconds since the Unix epoch; nil if it was not used yet.
  public let usedAt: Int64?

  public init(id: String, name: String, details: [String] = [], addedAt: Int64? = nil, usedAt: Int64? = nil) {
    self.id = id
    self.name = name
    self.details = details
    self.addedAt = addedAt
    self.usedAt = usedAt
  }
}

/// A provider has a record of an older version but does not implement `upgrade`.
public struct RecordUpgradeMissing: Error, Sendable, CustomStringConvertible {
  public let version: Int

  public init(version: Int) { self.version = version }

  public var description: String { "there is no `upgrade` for a record of version \(version)" }
}

/// The context of a call to a full provider: enough to judge the step, but no way to create a session.
public struct StepContext: Sendable {
  /// The name of the flow: `login`, `step_up`, … The operator chooses it, so do not depend on it.
  public let flow: String
  /// What completing the flow does, such as `reset` to replace a forgotten secret or `register` to create an account.
  public let flowPurpose: FlowPurposeKind
  /// What the step does.
  public let purpose: StepPurpose
  /// The account of the flow, or the account of the identifier in `begin`; nil if no account is known yet. If the
  /// policy conceals, the provider must do the same work in the same time without an account.
  public var account: StepAccount?
  /// The result of `readIdentifier` for the input of `begin`, if any.
  public package(set) var identifier: Identifier?
  /// The state from the provider's last answer in this step. The core seals it while the step waits.
  public let state: [UInt8]
  /// Milliseconds since the Unix epoch, by the core's clock.
  public let now: Int64
  /// The address to which a site that this step redirects to sends the user back; nil if the step was not begun over
  /// HTTP.
  public let callback: Callback?
  /// The fields of this round: in `begin` the declared ones; in `submit` those of the last `ask` or, after a
  /// `redirect`, the callback parameters. Empty if nothing was asked for, as after a `wait`.
  public var asked: [InputField]
  public var tools: StepTools

  /// More than five parameters: one for each field.
  /// - Parameters:
  ///   - flowPurpose: nil for the purpose that matches the step's purpose.
  ///   - asked: by default empty.
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

/// The purpose of a flow: the values of `purpose` in flows/NAME.lua.
public enum FlowPurposeKind: String, Sendable, Codable, CaseIterable {
  /// Signs a user in, or creates an account if the flow allows it.
  case signIn = "sign_in"
  /// Creates an account.
  case register
  /// Authenticates the user of a session again.
  case stepUp = "step_up"
  /// Verifies an identifier that the account claims.
  case verify
  /// Replaces an identifier, or proves a factor and replaces it.
  case change
  /// Adds an identifier. This can merge two accounts.
  case join
  /// Sets a factor if the account has none.
  case set
  /// Proves a factor and removes it.
  case disable
  /// Replaces a forgotten factor, after something else was proved.
  case reset
  /// Proves a factor within a session.
  case unlock

  /// The flow purpose in which a step of this purpose usually occurs.
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

/// What a step of a full provider does. The core derives it from the flow.
public enum StepPurpose: String, Sendable, Codable {
  /// Prove an existing secret, or a federated identity.
  case prove
  /// Set a secret if none exists, or in place of a forgotten one. The flow has required the necessary proofs before.
  case set
  /// Prove the old secret and replace it, in one attempt.
  case change
  /// Prove the secret and remove it, in one attempt.
  case disable
}

/// The callback of a step that redirects to another site.
public struct Callback: Sendable, Equatable {
  /// The exact address to register with that site: `https://example.com/auth/callback/google_oauth`.
  public let address: String
  /// The site must return this unchanged. It identifies the flow, and works only in the browser that began it.
  public let state: String

  public init(address: String, state: String) {
    self.address = address
    self.state = state
  }
}

/// The parts of a step's account that its provider may see.
public struct StepAccount: Sendable {
  public let id: String
  /// The provider's own record for the account, sealed at rest by the core; nil if none exists.
  public let record: [UInt8]?
  /// The account's identifiers, verified or only claimed, for rules such as "the PIN must not be part of your phone
  /// number".
  public let identifiers: [Identifier]
  /// First and last name, if known.
  public let names: [String]
  /// Whether the account may not keep the secret of its record. A new one must be another.
  public let mustReplace: Bool

  public init(
    id: String, record: [UInt8]?, identifiers: [Identifier] = [], names: [String] = [], mustReplace: Bool = false
  ) {
    self.mustReplace = mustReplace
    self.id = id
    self.record = record
    self.identifiers = identifiers
    self.names = names
  }
}

/// The answer of a full provider. A refusal is a value; a fault is a thrown error.
public enum StepAnswer: Sendable {
  /// Ask the user (again) for these fields, and show something beside them. `state` is returned with the next call.
  case ask([InputField], state: [UInt8], showing: [Shown] = [])
  /// Redirect the user to another site. `state` is returned with the next call.
  case redirect(to: String, state: [UInt8])
  /// Wait for the user to decide elsewhere, such as in an app on their phone. The core calls `submit` again without
  /// fields, at the earliest after `poll`, which is 1 to 60 seconds. `state` is returned with the call. A further
  /// `wait` is not counted. The flow's lifetime bounds the whole wait, and `refused` ends it.
  case wait(poll: Duration, state: [UInt8], showing: [Shown] = [])
  /// The user is authenticated.
  case proved(Proof)
  /// Not accepted, for a reason that the descriptor declares among its outcomes. Counted as a failure, unless the
  /// outcome says otherwise.
  case refused(RefusalReason)
  /// Not accepted, and the step continues with the fields of another round, such as the first question again. Written
  /// `.refused(reason, then: round)`.
  case refusedAndAsked(RefusalReason, Round)
  /// The input is malformed: 422, not counted.
  case malformed(InputProblem)

  /// One round of questions.
  public struct Round: Sendable {
    public let fields: [InputField]
    public let state: [UInt8]
    public let shown: [Shown]

    /// - Parameters:
    ///   - state: returned with the next call.
    ///   - showing: what the page displays beside the fields.
    public static func ask(_ fields: [InputField], state: [UInt8], showing shown: [Shown] = []) -> Round {
      Round(fields: fields, state: state, shown: shown)
    }
  }

  /// The allowed interval between two polls of a step.
  public static let pollIntervals: ClosedRange<Duration> = .seconds(1)...(.seconds(60))

  /// Not accepted, with the next round of questions. Counted like `refused`.
  public static func refused(_ reason: RefusalReason, then next: Round) -> StepAnswer { .refusedAndAsked(reason, next) }
}

/// Something to display beside the fields of a step. Only sent to the flow's own browser or app: the core seals it
/// while the flow waits, and never writes it to the log or the audit trail.
public enum Shown: Sendable, Equatable, Codable {
  /// A line of plain text.
  case text(String)
  /// A secret for the user to copy, such as an authenticator app's key. Shown in a monospaced font.
  case secret(String)
  /// A text that the page draws as a QR code. The API returns the text.
  case qr(String)
  /// Lines for the user to keep, such as recovery codes.
  case list([String])
  /// A call of the browser's or platform's credential API. `options` is the JSON text of a
  /// `PublicKeyCredentialCreationOptionsJSON` or a `PublicKeyCredentialRequestOptionsJSON` (Web Authentication, Level
  /// 3, section 5.1) of at most 32 KiB. The same round must ask for one field of kind `json` for the answer
  /// (`PublicKeyCredential.toJSON()`). Requires the presentation `.ceremony`.
  case ceremony(CeremonyCall, options: String)
}

/// The calls of the credential API.
public enum CeremonyCall: String, Sendable, Codable {
  /// `navigator.credentials.create()`: creates a credential.
  case create
  /// `navigator.credentials.get()`: proves an existing credential.
  case get
}

/// The result of a passed step.
public struct Proof: Sendable {
  /// What happens to the provider's record of the account.
  public enum Record: Sendable {
    /// The record stays unchanged.
    case keep
    /// The record is replaced when the flow completes. In a step of the purpose `prove`, the new record must be the
    /// same secret in a newer form, such as a hash at today's cost; it is dropped if the record was changed in the
    /// meantime. Steps that set or change a secret use `replaceOnce`.
    case replace([UInt8])
    /// The record is replaced, for a proof that can be used only once, such as a code of an authenticator app. Of all
    /// flows that were judged by the same record, one completes and the others are refused.
    case replaceOnce([UInt8])
    /// The record is removed. As with `replaceOnce`, the record that the proof was judged by must still exist, so that
    /// a code that removes it cannot be used for anything else.
    case remove
  }

  /// The identifiers that were proved, most specific first (a federated identity before its verified email address).
  public package(set) var proved: [Identifier]
  /// Identifiers that another site has verified once but is not authoritative for, such as an address at a domain that
  /// is not the site's own. A new account holds them as unverified. An existing account that already has one of them is
  /// only joined after its owner has proved it.
  public package(set) var attested: [Identifier]
  /// Identifiers that the user claims without proof. They are stored as unverified and cannot be used to sign in by
  /// themselves.
  public package(set) var claimed: [Identifier]
  public package(set) var firstName: String?
  public package(set) var lastName: String?
  /// The facts of this proof that policies can read for the rest of the flow, by the names of the descriptor's `facts`:
  /// `f.providers.NAME.FACT`. Undeclared names are dropped. A value of more than 300 bytes is a fault.
  public package(set) var facts: [String: String]
  public package(set) var record: Record
  /// Whether two factors were proved at once, such as a device and the fingerprint that unlocks it. A session with such
  /// a step has assurance level 2.
  public package(set) var isMultiFactor: Bool
  /// The id of the user's session at the other site, at most 255 bytes, so that the site can end the session that
  /// follows (`SiteSessions`). Only a keyed hash of it is stored.
  public package(set) var siteSession: String?
  /// What the provider needs to ask its site again about the identity (`Rechecking`), such as a refresh token; nil if
  /// it has nothing new. Stored sealed while the account has live sessions, if gateway.lua says `recheck`. If no
  /// proof has brought any, sessions end after `recheck_grace`.
  public package(set) var recheck: [UInt8]?

  /// The maximum length of `siteSession`, in bytes.
  public static let longestSiteSession = 255
  /// The maximum length of `recheck`, in bytes.
  public static let longestRecheck = 16_384

  /// More than five parameters: one for each field.
  public init(
    proved: [Identifier] = [], attested: [Identifier] = [], claimed: [Identifier] = [], firstName: String? = nil,
    lastName: String? = nil,
    facts: [String: String] = [:], record: Record = .keep, isMultiFactor: Bool = false,
    siteSession: String? = nil, recheck: [UInt8]? = nil
  ) {
    self.proved = proved
    self.attested = attested
    self.claimed = claimed
    self.firstName = firstName
    self.lastName = lastName
    self.facts = facts
    self.record = record
    self.isMultiFactor = isMultiFactor
    self.siteSession = siteSession
    self.recheck = recheck
  }
}
