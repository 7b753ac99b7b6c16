import MoongateSDK

/// The id of a flow: `fl_` and 256 bits in base64url. A bearer secret: whoever has it drives the flow, so the store
/// keeps its hash and logs a prefix.
package struct FlowID: Sendable, Hashable, CustomStringConvertible {
  package let secret: SecretText
  package let hash: TokenHash
  /// For logs: enough to find lines that belong together, too little to guess the rest.
  package let prefix: String

  /// One that a client sent.
  package init(text: String) {
    secret = SecretText(text)
    hash = TokenHash(of: text.utf8)
    prefix = String(text.prefix(9))
  }

  /// A new one.
  package init(from random: any RandomSource) { self.init(text: "fl_" + Base64URL.encode(random.bytes(32))) }

  package var description: String { prefix + "…" }

  package static func == (left: Self, right: Self) -> Bool { left.hash == right.hash }

  package func hash(into hasher: inout Hasher) { hasher.combine(hash) }
}

/// One run of a flow, as the store keeps it. Steps, texts and lifetimes are those of its beginning; limits and
/// functions are always the active generation's.
package struct FlowRecord: Sendable, Equatable, Codable {
  package enum Status: String, Sendable, Codable {
    case pending, complete, failed
  }

  package let id: TokenHash
  package let name: String
  /// Counts the changes; a change is stored only over the version that it was made from, so that of two at once one
  /// wins.
  package var version: Int
  package var status: Status
  package let createdAt: Timestamp
  package let expiresAt: Timestamp
  /// nil where an older gateway began the flow: then its name tells (`purpose`).
  private let declaredPurpose: FlowPurpose?
  package let accountRule: AccountRule
  /// Those of its beginning, and those that a policy has asked for since.
  package var steps: [StepRule]
  package let session: SessionRule
  package let next: NextPaths
  /// How the code providers of its steps make and word their codes.
  package private(set) var codes: [ProviderName: CodeTexts]
  package let returnTo: String?
  /// The hash of the `moongate-flow` cookie of the browser that the flow is bound to: the one that it began in, or,
  /// where an app takes over what it ends in, the first one that opened its pages. nil: the flow is driven by the API
  /// alone.
  package var browser: TokenHash?
  /// The network that it began in.
  @Base64Coded package private(set) var network: [UInt8]
  /// The index of the step that is due.
  package var position: Int
  /// The step that was begun.
  package var step: StepRecord?
  /// Set while the person has to choose among several accounts.
  package var accountChoice: AccountChoice?
  package var passed: [PassedStep]
  /// What was proved along the way, in order.
  package var proved: [Identifier]
  package var account: String?
  /// What waits for the flow's end.
  package var gathered: PendingProofs
  /// What the proofs of this flow relied on; nil in a flow that an older program began, which is over: under these
  /// rules it could end in a session that they would not give.
  package var basis: ProofBasis?
  /// The id of the session that drives it, where it is an account's own flow: the one that it was begun with, or one
  /// that has adopted it.
  package var startedIn: String?
  /// The app that takes over what it ends in, where there is one.
  package let app: AppReturn?
  /// The code that the app redeems, from the flow's completion until it is redeemed.
  package var appCode: AppCode?
  /// Whether completing it made the account.
  package var isNewAccount: Bool
  /// Where the person goes, once it is complete.
  package var completedNext: String?
  /// Which client address created it, as a keyed hash: flows in which nobody has proved anything are counted by it.
  package var origin: String?
  /// Whether an app began the step that leads to another site, before the flow belonged to the browser that came back
  /// from there; nil: no.
  var isSentByApp: Bool?
  /// The providers whose limits on `register` have counted the account that the flow makes; nil: none.
  package var registered: Set<ProviderName>?
  /// What providers have told of the steps that passed, for policies; nil: nothing.
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

  /// It belongs to the browser from now on.
  mutating func bind(to browser: TokenHash) {
    self.browser = browser
    if step != nil { isSentByApp = true }
  }

  /// Forgets what only a flow that goes on needs: of one that is over, its row keeps no sealed secret.
  mutating func close() {
    steps = []
    codes = [:]
    gathered = PendingProofs()
    facts = nil
  }

  /// A provider's step has passed, and this is what it tells of it.
  mutating func tells(_ told: [String: String], of provider: ProviderName) {
    if told.isEmpty, facts == nil { return }
    facts = (facts ?? [:]).merging([provider: told]) { $1 }
  }

  /// The step that is due; nil when all are behind.
  package var due: StepRule? { position < steps.count ? steps[position] : nil }

  /// What a provider's step does in this flow: what the flow is for says it, and `accounts.lua` for the steps that it
  /// requires.
  package func stepPurpose(of provider: ProviderName) -> StepPurpose {
    switch steps.last(where: { $0.requirement != nil && $0.choices.contains(provider) })?.requirement {
    case .prove?: .prove
    case .enroll?: .set
    case nil: purpose.step(of: provider)
    }
  }

  /// `origin` while nobody has proved anything in the flow; then it may be evicted (`FlowBound`).
  package var unprovedOrigin: String? {
    status == .pending && passed.isEmpty && basis?.introduced.isEmpty ?? true && startedIn == nil ? origin : nil
  }

  /// Whether nothing was typed, chosen or proved in it yet. An app may have begun the step that leads to another site:
  /// what comes back from there is the person's who went there.
  var isUntouched: Bool {
    let isOnlySentAway = step.map { $0.redirectTo != nil && $0.challenge == nil && $0.identifier == nil } ?? true
    return status == .pending && position == 0 && passed.isEmpty && proved.isEmpty && gathered == PendingProofs()
      && accountChoice == nil
      && account == nil && basis?.introduced.isEmpty ?? true && isOnlySentAway
  }

  /// Whether the step sets the secret of an account that the flow is about to make.
  func makesAccount(setting step: StepRecord) -> Bool {
    purpose.step(of: step.provider) == .set && accountRule != .existing && account == nil && step.account == nil
      && startedIn == nil
  }

  /// What completing it does.
  package var purpose: FlowPurpose {
    declaredPurpose ?? FlowPurpose(nameOfFlow: name, steps: steps, identifiesPeople: { _ in startedIn == nil })
  }
}

/// What a flow keeps of a code provider's policy from its beginning on.
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
  /// The account that the identifier opens, where there is one.
  package private(set) var account: String?
  /// `Account.epoch` of that account when the step was begun.
  package private(set) var epoch: Int?
  /// For a code to an identifier that the account is to be given: the other account that holds it, where there is one.
  package var holder: AccountVersion?
  /// Where nobody has proved the identifier: the accounts that claim it and that the step may be about.
  package var claimants: [AccountVersion]?
  /// For code providers: what was issued last.
  package var challenge: Challenge?
  /// In a `fallback`: the codes of its other providers that the person may type as well; nil: none.
  package var alternatives: [SentCode]?
  /// In a `fallback`: the providers that have told that they can never reach the identifier; nil: none.
  package var unreachable: [ProviderName]?
  /// For full providers: what they asked to keep, sealed.
  @Base64Coded package var state: [UInt8]
  /// For full providers: what they ask for; nil where it is what they declare.
  package var fields: [InputField]?
  /// For full providers: the site that the person is sent to.
  package var redirectTo: String?
  /// For full providers: what the person is shown beside the fields, sealed: it may be a secret.
  package var shown: SealedBytes?
  /// For full providers: when the step may be polled, where the person decides elsewhere. An older gateway does not
  /// read it, and asks at once.
  package var wait: StepWait?
  /// For full providers: what another site has posted with the person, until the browser comes for it.
  package var returned: HeldReturn?
  /// For full providers: the record by which they judged first, where they have asked for more since. A step that is
  /// opened anew has none.
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

/// What another site posted with a person (OAuth 2.0 Form Post Response Mode). The post brings no cookies of ours, so
/// it is kept until the same browser comes back by itself, which it was told the handle for.
package struct HeldReturn: Sendable, Equatable, Codable {
  /// Of the handle, which is good once.
  package let handle: TokenHash
  /// The parameters, sealed: the code of the other site is among them.
  package let fields: SealedBytes
  package let expiresAt: Timestamp
}

/// A step waits for a decision that is made elsewhere.
package struct StepWait: Sendable, Equatable, Codable {
  /// Milliseconds from one poll to the next.
  package let interval: Int64
  /// The earliest time of the next poll.
  package var due: Timestamp

  package init(interval: Duration, from now: Timestamp) {
    self.interval = interval.wholeMilliseconds
    due = now + interval
  }

  /// The same after a poll.
  package func polled(at now: Timestamp) -> StepWait { StepWait(interval: .milliseconds(interval), from: now) }
}

/// A code of a step, and the provider that sends it.
package struct SentCode: Sendable, Equatable, Codable {
  package let provider: ProviderName
  package let challenge: Challenge
}

extension StepRecord {
  /// The codes that the person may type, that of `provider` first; none in a step without codes.
  var codes: [SentCode] {
    (challenge.map { [SentCode(provider: provider, challenge: $0)] } ?? []) + (alternatives ?? [])
  }

  /// The step as if this code were the only one.
  func sent(_ code: SentCode) -> StepRecord { of(code.provider, code.challenge) }

  /// The step as if the provider's code were the only one; without a code where it has sent none.
  func sent(by provider: ProviderName) -> StepRecord {
    of(provider, codes.first { $0.provider == provider }?.challenge)
  }

  /// The same step about an account.
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

/// Several accounts claim what the person has just proved: they choose one of them.
package struct AccountChoice: Sendable, Equatable, Codable {
  /// The provider that proved the identifier.
  package let provider: ProviderName
  package let identifier: Identifier
  /// As they were when the code was sent, oldest first.
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

/// One issued code. It lives in `[issuedAt, expiresAt)`, in one flow, for one provider and identifier, and is spent by
/// the flow's own change of version.
package struct Challenge: Sendable, Equatable, Codable {
  /// `KeyRing.codeMAC`; of a code that nobody knows where nothing was sent (a concealed unknown account).
  @Base64Coded package private(set) var mac: [UInt8]
  package let issuedAt: Timestamp
  package let expiresAt: Timestamp
  /// What the code looks like: kept from the step's beginning.
  package let rule: CodeRule

  package init(mac: [UInt8], issuedAt: Timestamp, expiresAt: Timestamp, rule: CodeRule) {
    self.mac = mac
    self.issuedAt = issuedAt
    self.expiresAt = expiresAt
    self.rule = rule
  }
}
