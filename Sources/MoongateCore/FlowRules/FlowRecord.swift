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
  /// Whether the flow is pending, complete, or failed.
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
  /// What completing the flow does.
  package let purpose: FlowPurpose
  package let accountRule: AccountRule
  /// The providers by which the flow also creates accounts (`FlowDefinition.registers`); nil: none.
  let registers: Set<ProviderName>?
  /// The steps at its beginning, and those that policies have added.
  package var steps: [StepRule]
  package let session: SessionRule
  package let next: NextPaths
  /// How the code providers of its steps generate and word their codes.
  package private(set) var codes: [ProviderName: CodeTexts]
  package let returnTo: String?
  /// The hash of the `moongate-flow` cookie of the browser that the flow is bound to: the one in which it began or, for
  /// a flow with a grant, the first one that opened its pages. nil: the flow is used by the API only.
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
  package var pendingProofs: PendingProofs
  /// What the proofs of this flow relied on.
  package var basis: ProofBasis
  /// The ID of the session that a signed-in account's flow belongs to: the one that began it, or one that has adopted
  /// it.
  package var startedIn: String?
  /// The app that receives the result, if any. Only the pages of the flow's browser change such a flow.
  package internal(set) var grant: Grant?
  /// The code that the app redeems, from completion until it is redeemed.
  package var grantCode: GrantCode?
  /// Whether the user chose to stay signed in, by the last request that said so.
  package internal(set) var isRemembered: Bool
  /// The code of the invitation with which the flow began; nil: none.
  package var invitation: TokenHash?
  /// Whether an operator made it for the owner of an account (`ResetLink`). It has vouched for its holder, and opens no
  /// session.
  package internal(set) var isByOperator = false
  /// Whether the flow created the account.
  package var isNewAccount: Bool
  /// Where the user goes once the flow is complete.
  package var completedNext: String?
  /// The client that created it (`FlowOrigin`). Flows without any proof are counted by it.
  package var origin: String?
  /// The providers whose `register` limits have counted the account that the flow creates; nil: none.
  package var registered: Set<ProviderName>?
  /// The facts that providers have reported about passed steps, for policies; nil: none.
  package private(set) var facts: [ProviderName: [String: String]]?

  /// The names in stored rows. A property without a case here is not stored.
  package enum CodingKeys: String, CodingKey, CaseIterable {
    case id, name, version, status, createdAt, expiresAt, purpose, accountRule, registers, steps, session, next, codes
    case returnTo, browser, network, position, step, accountChoice, passed, proved, account, pendingProofs
    case basis, startedIn, grant, grantCode, isRemembered, invitation, isByOperator, isNewAccount, completedNext
    case origin, registered, facts
  }

  /// More than five parameters: everything that is fixed when a flow begins.
  package init(
    id: TokenHash, definition: FlowDefinition, codes: [ProviderName: CodeTexts], createdAt: Timestamp,
    returnTo: String?, browser: TokenHash?,
    network: [UInt8], account: AccountVersion?, startedIn: String? = nil, grant: Grant? = nil
  ) {
    self.id = id
    name = definition.name
    version = 0
    status = .pending
    self.createdAt = createdAt
    expiresAt = createdAt + definition.lifetime
    purpose = definition.purpose
    accountRule = definition.account
    registers = definition.registers.isEmpty ? nil : definition.registers
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
    pendingProofs = PendingProofs()
    basis = ProofBasis(epoch: account?.epoch)
    self.startedIn = startedIn
    self.grant = grant
    grantCode = nil
    isRemembered = false
    isNewAccount = false
    completedNext = nil
  }

  /// Whether the user may choose to stay signed in. In a flow of a signed-in user, the session keeps its times.
  package var offersRemembering: Bool { session.remember != nil && startedIn == nil }

  /// Records the user's choice to stay signed in; nil: the request said nothing. Without the offer, nothing changes.
  mutating func remember(_ choice: Bool?) {
    if let choice, offersRemembering { isRemembered = choice }
  }

  /// Makes the steps that offer one of these providers required.
  package mutating func requireSteps(by providers: Set<ProviderName>) {
    steps = steps.map { $0.isSkippable && !providers.isDisjoint(with: $0.choices) ? $0.required : $0 }
  }

  /// The times of the session that the flow opens.
  var sessionTimes: RememberedTimes {
    if isRemembered, let times = session.remember { return times }
    return RememberedTimes(lifetime: session.lifetime, idle: session.idle)
  }

  /// Removes what only an open flow needs, so that the row of a finished flow holds no sealed secret.
  mutating func close() {
    steps = []
    codes = [:]
    pendingProofs = PendingProofs()
    facts = nil
  }

  /// Stores the facts that a provider reports about its passed step.
  mutating func recordFacts(_ reported: [String: String], of provider: ProviderName) {
    if reported.isEmpty, facts == nil { return }
    facts = (facts ?? [:]).merging([provider: reported]) { $1 }
  }

  /// The current step; nil if none is left.
  package var due: StepRule? { position < steps.count ? steps[position] : nil }

  /// What a provider's step does in this flow. Decided by the flow's purpose and, for steps that `accounts.lua`
  /// requires, by the requirement.
  package func stepPurpose(of provider: ProviderName) -> StepPurpose {
    switch steps.last(where: { $0.requirement != nil && $0.choices.contains(provider) })?.requirement {
    case .prove?: .prove
    case .enroll?, .replace?: .set
    case nil: purpose.step(of: provider)
    }
  }

  /// Whether the flow replaces the provider's secret when it completes. A newer form of the same secret is none.
  package func replacesSecret(of provider: ProviderName) -> Bool {
    guard let record = pendingProofs.records[provider] else { return false }
    return record.sealed != nil && !(record.isRenewal ?? false)
  }

  /// The providers whose secrets the flow replaces because the account must (`Account.dueChanges`).
  var replacedAsDue: [ProviderName] {
    steps.filter { $0.requirement == .replace }.flatMap(\.choices).filter(replacesSecret)
  }

  /// `origin`, as long as nothing was proved in the flow. Such a flow may be evicted (`FlowBound`).
  package var unverifiedOrigin: String? {
    guard status == .pending, passed.isEmpty, basis.introduced.isEmpty, startedIn == nil else { return nil }
    return browser == nil ? origin : origin.map(FlowOrigin.opened)
  }

  /// Which accounts the flow may end in. An identity elsewhere also signs in at a flow for new accounts.
  ///
  /// Attack: somebody creates an account by an identity of their own at an operator's sign-in flow, although
  /// registration is closed. A flow for existing accounts creates one only by the providers that it names.
  package var endingRule: AccountRule {
    guard proved.contains(where: { $0.kind == .federated }) else { return accountRule }
    guard accountRule == .existing else { return .any }
    let provers = (passed + basis.introduced).map(\.provider)
    return registers?.isDisjoint(with: provers) ?? true ? .existing : .any
  }

  /// Whether the step sets the secret of an account that the flow will create.
  func makesAccount(setting step: StepRecord) -> Bool {
    purpose.step(of: step.provider) == .set && accountRule != .existing && account == nil && step.account == nil
      && startedIn == nil
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
