import MoongateSDK

/// What a client may see of a flow (http.md, "Flows").
package struct FlowView: Sendable {
  package var id: FlowID
  package var flow: String
  /// For pages; no answer of the API has it.
  package var purpose: FlowPurpose
  package var status: FlowRecord.Status
  package var expiresAt: Timestamp
  /// What may be begun; empty while a step is open or nothing is left.
  package var choices: [ProviderName]
  package var step: StepView?
  package var passed: [PassedStep]
  package var account: AccountView?
  package var session: SessionView?
  package var next: String?
  /// Where the person was going, for pages; no answer of the API has it.
  package var returnTo: String?
  /// Whether the step that is due sets up a factor that `accounts.lua` requires, for pages.
  package var isEnrolling = false
  /// What this device is to carry from now on (`DeviceToken`); there once, in the answer that made the session.
  package var deviceToken: SecretText?
  /// Whether the flow is bound to the browser that asks, which is then signed in by cookies.
  package var isOfBrowser: Bool
  /// Whether a step has passed, also one that is no factor. For pages; no answer of the API has it.
  package var isUnderWay = false
  /// Whether an app takes over what the flow ends in. For pages; no answer of the API has it.
  package var isForApp = false
  /// The first name that was typed in the flow, for pages of the browser that the flow belongs to. No answer of the API
  /// has it.
  package var firstName: String?
  /// The last name that was typed in the flow, for pages like `firstName`.
  package var lastName: String?

  package init(
    id: FlowID, flow: String, purpose: FlowPurpose, status: FlowRecord.Status, expiresAt: Timestamp,
    choices: [ProviderName], step: StepView?,
    passed: [PassedStep],
    account: AccountView?, session: SessionView?, next: String?, isOfBrowser: Bool
  ) {
    self.id = id
    self.flow = flow
    self.purpose = purpose
    self.status = status
    self.expiresAt = expiresAt
    self.choices = choices
    self.step = step
    self.passed = passed
    self.account = account
    self.session = session
    self.next = next
    self.isOfBrowser = isOfBrowser
  }

  /// The provider whose turn it is: of the open step, or the only one that may be begun. nil where the person chooses
  /// or nothing is left.
  package var due: ProviderName? { step?.provider ?? (choices.count == 1 ? choices[0] : nil) }
}

/// The step at work.
package struct StepView: Sendable, Equatable {
  package var provider: ProviderName
  package var fields: [InputField]
  /// Where the code went, for the person to read.
  package var sentTo: String?
  package var expiresAt: Timestamp?
  package var resendAt: Timestamp?
  package var attemptsLeft: Int?
  package var resendsLeft: Int?
  package var isSkippable: Bool
  package var redirectTo: String?
  /// In a `fallback`: the other providers that can send a code to the same identifier.
  package var fallbacks: [ProviderName] = []
  /// There while a lock stands.
  package var lockedUntil: Timestamp?
  /// For the person to see beside the fields.
  package var shown: [Shown] = []
  /// How long until the step may be polled; nil where it does not wait.
  package var retryAfter: Duration?
  /// The other choices of the flow, where the step waits. For pages; no answer of the API has it.
  package var alternatives: [ProviderName] = []
  /// The accounts of which the person has to choose one, as the field `account`.
  package var accounts: [AccountOption] = []

  package init(
    provider: ProviderName, fields: [InputField], sentTo: String?, expiresAt: Timestamp?, resendAt: Timestamp?,
    attemptsLeft: Int?,
    resendsLeft: Int?, isSkippable: Bool, redirectTo: String? = nil, lockedUntil: Timestamp? = nil
  ) {
    self.provider = provider
    self.fields = fields
    self.sentTo = sentTo
    self.expiresAt = expiresAt
    self.resendAt = resendAt
    self.attemptsLeft = attemptsLeft
    self.resendsLeft = resendsLeft
    self.isSkippable = isSkippable
    self.redirectTo = redirectTo
    self.lockedUntil = lockedUntil
  }
}

/// An account as its owner sees it.
package struct AccountView: Sendable, Equatable {
  package var id: String
  /// E.164.
  package var phone: String?
  package var email: String?
  package var firstName: String?
  package var lastName: String?
  package var isPhoneVerified: Bool
  package var isEmailVerified: Bool
  package var hasPIN: Bool
  package var isNewUser: Bool

  /// - Parameter pads: the providers whose factor is a PIN (`PolicyGeneration.pads`).
  package init(_ account: Account, isNew: Bool, pads: Set<ProviderName>) {
    id = account.id
    let phone = account.identifier(.phone)
    let email = account.identifier(.email)
    self.phone = phone?.identifier.value
    self.email = email?.identifier.value
    firstName = account.firstName
    lastName = account.lastName
    isPhoneVerified = phone?.verifiedAt != nil
    isEmailVerified = email?.verifiedAt != nil
    hasPIN = !account.credentials.isDisjoint(with: pads)
    isNewUser = isNew
  }
}

/// A session as its owner sees it. The token is there once: in the answer that made it.
package struct SessionView: Sendable {
  package var id: String
  package var token: SecretText?
  package var expiresAt: Timestamp
  package var aal: Int
  package var passed: [PassedStep]

  package init(_ session: Session, token: SecretText?) {
    id = session.id
    self.token = token
    expiresAt = session.expiresAt
    aal = session.assuranceLevel
    passed = session.passed
  }
}
