import MoongateSDK

/// The view of a flow that a client receives.
package struct FlowView: Sendable {
  package var id: FlowID
  package var flow: String
  /// For pages. Not in API responses.
  package var purpose: FlowPurpose
  package var status: FlowRecord.Status
  package var expiresAt: Timestamp
  /// The providers with which the next step may begin. Empty while a step is open or if none is left.
  package var choices: [ProviderName]
  package var step: StepView?
  package var passed: [PassedStep]
  package var account: AccountView?
  package var session: SessionView?
  package var next: String?
  /// Where the user was going. For pages; not in API responses.
  package var returnTo: String?
  /// Whether the current step sets a secret that `accounts.lua` or the account requires. For pages.
  package var isEnrolling = false
  /// Why the account must replace the secret of the current step; nil if it need not.
  package var changeDue: DueChange?
  /// The providers that have accepted a secret that attackers know, and that the account keeps. Only in the response
  /// that completed the flow.
  package var exposed: [ProviderName] = []
  /// Whether an operator made the flow for its holder.
  package var isByOperator = false
  /// The device token that this device stores from now on (`DeviceToken`). Only in the response that created the
  /// session, or that gave the session of a trusted device a new token.
  package var deviceToken: SecretText?
  /// Whether the flow is bound to the browser that made the request. The sign-in then sets cookies.
  package var isOfBrowser: Bool
  /// Whether a step has passed, including one that is not a factor. For pages; not in API responses.
  package var isUnderWay = false
  /// Whether the due step, which has not begun, can be skipped. For pages; not in API responses.
  package var isSkippable = false
  /// The kinds of identifier that the flow has claimed for a new account; nil if the flow is about an existing one. For
  /// pages; not in API responses.
  package var claimedKinds: Set<IdentifierKind>?
  /// Whether the user has chosen to stay signed in; nil if the flow does not offer that.
  package var isRemembered: Bool?
  /// Whether the user has chosen to stay signed in, here or in the app that the flow is for. For pages; not in API
  /// responses.
  package var staysSignedIn = false
  /// The app that receives the result of the flow. For pages; not in API responses.
  package var app: ReceivingApp?
  /// The first name that was entered in the flow, for pages of the flow's browser. Not in API responses.
  package var firstName: String?
  /// The last name that was entered in the flow, as `firstName`.
  package var lastName: String?

  /// More than five parameters: one for each field.
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

  /// The current provider: that of the open step, or the only choice. nil if the user has to choose or no step is left.
  package var due: ProviderName? { step?.provider ?? (choices.count == 1 ? choices[0] : nil) }

  /// Whether the page of a code provider must ask for an identifier of the kind, because a user who registers, such as
  /// by a name, has given none.
  package func asks(for kind: IdentifierKind) -> Bool {
    switch purpose {
    case .register, .signIn: claimedKinds.map { !$0.contains(kind) } ?? false
    default: false
    }
  }
}

/// The current step.
package struct StepView: Sendable, Equatable {
  package var provider: ProviderName
  package var fields: [InputField]
  /// Where the code was sent, formatted for display.
  package var sentTo: String?
  package var expiresAt: Timestamp?
  package var resendAt: Timestamp?
  package var attemptsLeft: Int?
  package var resendsLeft: Int?
  package var isSkippable: Bool
  package var redirectTo: String?
  /// In a `fallback`: the other providers that can send a code to the same identifier.
  package var fallbacks: [ProviderName] = []
  /// When the lock ends; nil without a lock.
  package var lockedUntil: Timestamp?
  /// What the page displays beside the fields.
  package var shown: [Shown] = []
  /// How long until the step may be polled; nil if it does not wait.
  package var retryAfter: Duration?
  /// The flow's other choices while the step waits. For pages; not in API responses.
  package var alternatives: [ProviderName] = []
  /// The accounts from which the user must choose one, with the field `account`.
  package var accounts: [AccountOption] = []

  /// More than five parameters: one for each field.
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
  /// In E.164 format.
  package var phone: String?
  package var email: String?
  /// The user name; nil for an account without one.
  package var name: String?
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
    name = account.identifier(.name)?.identifier.value
    firstName = account.firstName
    lastName = account.lastName
    isPhoneVerified = phone?.verifiedAt != nil
    isEmailVerified = email?.verifiedAt != nil
    hasPIN = !account.credentials.isDisjoint(with: pads)
    isNewUser = isNew
  }
}

/// A session as its owner sees it. The token is only in the response that created it.
package struct SessionView: Sendable {
  package var id: String
  package var token: SecretText?
  package var expiresAt: Timestamp
  package var aal: Int
  package var passed: [PassedStep]
  /// How long a browser keeps the cookie; nil: until it is closed. Not in API responses.
  package var cookieLifetime: Duration?

  /// - Parameter now: the time of the response; nil if it sets no cookie.
  package init(_ session: Session, token: SecretText?, at now: Timestamp? = nil) {
    id = session.id
    cookieLifetime = now.flatMap(session.cookieLifetime)
    self.token = token
    expiresAt = session.expiresAt
    aal = session.assuranceLevel
    passed = session.counted
  }
}
