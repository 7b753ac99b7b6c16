import MoongateSDK

/// The ID of a flow: `fl_` followed by 256 random bits in base64url. It is a bearer secret that gives control of the
/// flow, so the store keeps its hash and logs contain a prefix.
package struct FlowID: Sendable, Hashable, CustomStringConvertible {
  package let secret: SecretText
  package let hash: TokenHash
  /// For logs: enough to find related lines, too little to guess the rest.
  package let prefix: String

  /// An ID that a client sent.
  package init(text: String) {
    secret = SecretText(text)
    hash = TokenHash(of: text.utf8)
    prefix = String(text.prefix(9))
  }

  /// A new ID.
  package init(from random: any RandomSource) { self.init(text: "fl_" + Base64URL.encode(random.bytes(32))) }

  package var description: String { prefix + "…" }

  package static func == (left: Self, right: Self) -> Bool { left.hash == right.hash }

  package func hash(into hasher: inout Hasher) { hasher.combine(hash) }
}

/// One run of a flow, as it is stored. Steps, texts and lifetimes are fixed at its beginning; limits and functions are
/// always those of the active generation.
package struct FlowRecord: Sendable, Equatable, Codable {
  package enum Status: String, Sendable, Codable {
    case pending, complete, failed
  }

  package let id: TokenHash
  package let name: String
  /// Counts the changes. A change is stored only over the version it is based on, so that one of two concurrent changes
  /// wins.
  package var version: Int
  package var status: Status
  package let createdAt: Timestamp
  package let expiresAt: Timestamp
  /// nil if an older gateway began the flow. The purpose is then derived from the name (`purpose`).
  private let declaredPurpose: FlowPurpose?
  package let accountRule: AccountRule
  /// The steps at its beginning, and those that policies have added.
  package var steps: [StepRule]
  package let session: SessionRule
  package let next: NextPaths
  /// How the code providers of its steps generate and word their codes.
  package private(set) var codes: [ProviderName: CodeTexts]
  package let returnTo: String?
  /// The hash of the `moongate-flow` cookie of the browser that the flow is bound to: the one in which it began or, for
  /// a flow of an app, the first one that opened its pages. nil: the flow is used by the API only.
  package var browser: TokenHash?
  /// The network in which it began.
  @Base64Coded package private(set) var network: [UInt8]
  /// The index of the current step.
  package var position: Int
  /// The step that was begun.
  package var step: StepRecord?
  /// Set while the user must choose among several accounts.
  package var accountChoice: AccountChoice?
  package var passed: [PassedStep]
  /// The identifiers that were proved, in order.
  package var proved: [Identifier]
  package var account: String?
  /// What is handed over when the flow completes.
  package var gathered: PendingProofs
  /// What the proofs of this flow relied on; nil for a flow that an older version began. Such a flow is closed, because
  /// it could end in a session that these rules would not allow.
  package var basis: ProofBasis?
  /// The ID of the session that a signed-in account's flow belongs to: the one that began it, or one that has adopted
  /// it.
  package var startedIn: String?
  /// The app that receives the result, if any.
  package let app: AppReturn?
  /// The code that the app redeems, from completion until it is redeemed.
  package var appCode: AppCode?
  /// Whether the flow created the account.
  package var isNewAccount: Bool
  /// Where the user goes once the flow is complete.
  package var completedNext: String?
  /// A keyed hash of the client address that created it. Flows without any proof are counted by it.
  package var origin: String?
  /// Whether an app began the step that redirects to another site, before the flow was bound to the browser that came
  /// back from there; nil: no.
  var isSentByApp: Bool?
  /// The providers whose `register` limits have counted the account that the flow creates; nil: none.
  package var registered: Set<ProviderName>?
  /// The facts that providers have reported about passed steps, for policies; nil: none.
  package private(set) var facts: [ProviderName: [String: String]]?

  package init(
    id: TokenHash, definition: FlowDefinition, codes: [ProviderName: CodeTexts], createdAt: Timestamp,
    returnTo: String?, browser: TokenHash?,
    network: [UInt8], account: AccountVersion?, startedIn: String? = nil, app: AppReturn? = nil
  ) {
    self.id = id
    name = definition.name
    version = 0
    status = .pending
    self.createdAt = createdAt
    expiresAt = createdAt + definition.lifetime
    declaredPurpose = definition.purpose
    accountRule = definition.account
    steps = definition.steps
    session = definition.session
    next = definition.next
    self.codes = codes
    self.returnTo = returnTo
    self.browser = browser
    self.network = network
    position = 0
    step = nil
    passed = []
    proved = []
    self.account = account?.id
    gathered = PendingProofs()
    basis = ProofBasis(epoch: account?.epoch)
    self.startedIn = startedIn
    self.app = app
    appCode = nil
    isNewAccount = false
    completedNext = nil
  }

  /// Binds the flow to the browser.
  mutating func bind(to browser: TokenHash) {
    self.browser = browser
    if step != nil { isSentByApp = true }
  }

  /// Removes what only an open flow needs, so that the row of a finished flow holds no sealed secret.
  mutating func close() {
    steps = []
    codes = [:]
    gathered = PendingProofs()
    facts = nil
  }

  /// Stores the facts that a provider reports about its passed step.
  mutating func tells(_ told: [String: String], of provider: ProviderName) {
    if told.isEmpty, facts == nil { return }
    facts = (facts ?? [:]).merging([provider: told]) { $1 }
  }

  /// The current step; nil if none is left.
  package var due: StepRule? { position < steps.count ? steps[position] : nil }

  /// What a provider's step does in this flow. Decided by the flow's purpose and, for steps that `accounts.lua`
  /// requires, by the requirement.
  package func stepPurpose(of provider: ProviderName) -> StepPurpose {
    switch steps.last(where: { $0.requirement != nil && $0.choices.contains(provider) })?.requirement {
    case .prove?: .prove
    case .enroll?: .set
    case nil: purpose.step(of: provider)
    }
  }

  /// `origin`, as long as nothing was proved in the flow. Such a flow may be evicted (`FlowBound`).
  package var unprovedOrigin: String? {
    status == .pending && passed.isEmpty && basis?.introduced.isEmpty ?? true && startedIn == nil ? origin : nil
  }

  /// Whether nothing was entered, chosen or proved in it yet. An app may have begun the step that redirects to another
  /// site: what comes back from there belongs to the user who went there.
  var isUntouched: Bool {
    let isOnlySentAway = step.map { $0.redirectTo != nil && $0.challenge == nil && $0.identifier == nil } ?? true
    return status == .pending && position == 0 && passed.isEmpty && proved.isEmpty && gathered == PendingProofs()
      && accountChoice == nil
      && account == nil && basis?.introduced.isEmpty ?? true && isOnlySentAway
  }

  /// Whether the step sets the secret of an account that the flow will create.
  func makesAccount(setting step: StepRecord) -> Bool {
    purpose.step(of: step.provider) == .set && accountRule != .existing && account == nil && step.account == nil
      && startedIn == nil
  }

  /// What completing the flow does.
  package var purpose: FlowPurpose {
    declaredPurpose ?? FlowPurpose(nameOfFlow: name, steps: steps, identifiesPeople: { _ in startedIn == nil })
  }
}

/// The parts of a code provider's policy that a flow keeps from its beginning.
package struct CodeTexts: Sendable, Equatable, Codable {
  package let rule: CodeRule
  package let message: String

  package init(_ policy: ProviderPolicy) {
    rule = policy.code
    message = policy.message
  }
}

/// A step that was begun.
package struct StepRecord: Sendable, Equatable, Codable {
  package private(set) var provider: ProviderName
  package let identifier: Identifier?
  package let isSkippable: Bool
  /// The account that the identifier belongs to, if any.
  package private(set) var account: String?
  /// `Account.epoch` of that account when the step was begun.
  package private(set) var epoch: Int?
  /// For a code to a new identifier: the other account that holds the identifier, if any.
  package var holder: AccountVersion?
  /// If the identifier is unverified: the accounts that claim it and that the step may be about.
  package var claimants: [AccountVersion]?
  /// For code providers: the last issued code.
  package var challenge: Challenge?
  /// In a `fallback`: the codes of its other providers that the user may also enter; nil: none.
  package var alternatives: [SentCode]?
  /// In a `fallback`: the providers that reported that they can never reach the identifier; nil: none.
  package var unreachable: [ProviderName]?
  /// For full providers: their state, sealed.
  @Base64Coded package var state: [UInt8]
  /// For full providers: the fields that they ask for; nil for the declared fields.
  package var fields: [InputField]?
  /// For full providers: the site that the user is redirected to.
  package var redirectTo: String?
  /// For full providers: what the page displays beside the fields. Sealed, because it can be a secret.
  package var shown: SealedBytes?
  /// For full providers: when the step may be polled, if the user decides elsewhere. An older gateway ignores it and
  /// polls at once.
  package var wait: StepWait?
  /// For full providers: the fields that another site has posted, until the browser fetches them.
  package var returned: PostedCallback?
  /// For full providers: the record by which they judged first, if they have asked for more since. A step that is begun
  /// anew has none.
  package var judgedBy: StoredRecord.Judged?

  package init(
    provider: ProviderName, identifier: Identifier?, isSkippable: Bool, account: AccountVersion?, challenge: Challenge?,
    state: [UInt8] = []
  ) {
    self.provider = provider
    self.identifier = identifier
    self.isSkippable = isSkippable
    self.account = account?.id
    epoch = account?.epoch
    self.challenge = challenge
    self.state = state
  }
}

/// The fields that another site posted (OAuth 2.0 Form Post Response Mode). The cross-site POST carries none of our
/// cookies, so the fields are stored until the same browser returns with the handle that it was given.
package struct PostedCallback: Sendable, Equatable, Codable {
  /// The hash of the handle, which can be used once.
  package let handle: TokenHash
  /// The parameters, sealed, because they include the other site's code.
  package let fields: SealedBytes
  package let expiresAt: Timestamp
}

/// The polling state of a step that waits for a decision elsewhere.
package struct StepWait: Sendable, Equatable, Codable {
  /// The milliseconds between two polls.
  package let interval: Int64
  /// The earliest time of the next poll.
  package var due: Timestamp

  package init(interval: Duration, from now: Timestamp) {
    self.interval = interval.wholeMilliseconds
    due = now + interval
  }

  /// The state after a poll.
  package func polled(at now: Timestamp) -> StepWait { StepWait(interval: .milliseconds(interval), from: now) }
}

/// A code of a step, and the provider that sends it.
package struct SentCode: Sendable, Equatable, Codable {
  package let provider: ProviderName
  package let challenge: Challenge
}

extension StepRecord {
  /// The codes that the user may enter, with `provider`'s code first; empty in a step without codes.
  var codes: [SentCode] {
    (challenge.map { [SentCode(provider: provider, challenge: $0)] } ?? []) + (alternatives ?? [])
  }

  /// The step as if this were its only code.
  func sent(_ code: SentCode) -> StepRecord { of(code.provider, code.challenge) }

  /// The step as if this provider's code were its only one; without a code if the provider has sent none.
  func sent(by provider: ProviderName) -> StepRecord {
    of(provider, codes.first { $0.provider == provider }?.challenge)
  }

  /// The step with this account.
  func about(_ account: AccountVersion) -> StepRecord {
    var step = self
    (step.account, step.epoch) = (account.id, account.epoch)
    return step
  }

  private func of(_ provider: ProviderName, _ challenge: Challenge?) -> StepRecord {
    var step = self
    step.provider = provider
    step.challenge = challenge
    step.alternatives = nil
    return step
  }
}

/// Several accounts claim the identifier that the user has just proved. The user must choose one of them.
package struct AccountChoice: Sendable, Equatable, Codable {
  /// The provider that proved the identifier.
  package let provider: ProviderName
  package let identifier: Identifier
  /// The accounts when the code was sent, oldest first.
  package let accounts: [AccountVersion]

  package init(provider: ProviderName, identifier: Identifier, accounts: [AccountVersion]) {
    self.provider = provider
    self.identifier = identifier
    self.accounts = accounts
  }
}

/// Bytes that `KeyRing` has sealed.
package struct SealedBytes: Sendable, Equatable, Codable {
  @Base64Coded package private(set) var bytes: [UInt8]

  package init(_ bytes: [UInt8]) { self.bytes = bytes }
}

/// An issued code. It is valid in `[issuedAt, expiresAt)`, in one flow, for one provider and identifier. It is used up
/// by the flow's change of version.
package struct Challenge: Sendable, Equatable, Codable {
  /// `KeyRing.codeMAC`. If nothing was sent (a concealed unknown account), the MAC of an unknown code.
  @Base64Coded package private(set) var mac: [UInt8]
  package let issuedAt: Timestamp
  package let expiresAt: Timestamp
  /// The format of the code, fixed when the step began.
  package let rule: CodeRule

  package init(mac: [UInt8], issuedAt: Timestamp, expiresAt: Timestamp, rule: CodeRule) {
    self.mac = mac
    self.issuedAt = issuedAt
    self.expiresAt = expiresAt
    self.rule = rule
  }
}
