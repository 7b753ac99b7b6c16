import MoongateSDK

/// The facts that a policy function sees. Read-only; the same facts give the same decision.
package struct Facts: Sendable {
  package var now: Timestamp
  /// `send`, `verify`, or nil for `when` and `decide`.
  package var action: LimitAction?
  package var provider: ProviderName?
  package var flow: FlowFacts?
  package var identifier: Identifier?
  /// The source of `f.phone` and `f.email` if there is no `identifier`: at most one of each kind.
  package var identifiers: [Identifier] = []
  package var account: AccountFacts
  package var client: ClientFacts
  package var limits: [LimitFacts]
  /// Whether the system clock was seen to go backwards.
  package var clockIsSuspect: Bool
  package var request: RequestFacts?
  package var session: SessionFacts?
  /// Which of the facts can no longer change before the decision is final.
  package var known = FactKnowledge.all

  /// More than five parameters: one for each field.
  package init(
    now: Timestamp, action: LimitAction? = nil, provider: ProviderName? = nil, flow: FlowFacts? = nil,
    identifier: Identifier? = nil,
    account: AccountFacts = AccountFacts(), client: ClientFacts, limits: [LimitFacts] = [],
    clockIsSuspect: Bool = false,
    request: RequestFacts? = nil, session: SessionFacts? = nil
  ) {
    self.now = now
    self.action = action
    self.provider = provider
    self.flow = flow
    self.identifier = identifier
    self.account = account
    self.client = client
    self.limits = limits
    self.clockIsSuspect = clockIsSuspect
    self.request = request
    self.session = session
  }
}

/// Which facts are final at the point of a flow at which `admit` of accounts.lua is called. The time, the name of the
/// flow and an identifier that is given are known at every point.
package struct FactKnowledge: OptionSet, Sendable {
  package let rawValue: Int

  package init(rawValue: Int) { self.rawValue = rawValue }

  /// The client is the user's own.
  package static let client = Self(rawValue: 1)
  /// The account has been proved.
  package static let account = Self(rawValue: 2)
  /// The flow has ended: what was passed and reported in it is complete.
  package static let flow = Self(rawValue: 4)
  package static let all: Self = [.client, .account, .flow]
}

/// `f.flow`.
package struct FlowFacts: Sendable {
  package var name: String
  package var passed: Set<ProviderName>
  /// `f.providers.NAME.FACT`: the facts that providers have reported about their steps in this flow.
  package var reported: [ProviderName: [String: String]]

  package init(name: String, passed: Set<ProviderName>, reported: [ProviderName: [String: String]] = [:]) {
    self.name = name
    self.passed = passed
    self.reported = reported
  }
}

/// `f.account`. Without an account, `exists` is false, flags are false and all other values are nil.
package struct AccountFacts: Sendable {
  package var exists: Bool
  package var id: String?
  /// Time since the account was created.
  package var age: Duration?
  /// Time since the account was last used.
  package var idle: Duration?
  package var hasPIN: Bool
  package var hasEmail: Bool
  package var isEmailVerified: Bool
  package var isPhoneVerified: Bool
  /// The providers that store a secret for the account, such as `pin`, `password` or `totp`.
  package var factors: Set<ProviderName>
  /// The verified federated identities, by provider.
  package var identities: [ProviderName: Identifier]
  /// What the groups of the account are computed from.
  package var groups = GroupFacts()

  /// More than five parameters: one for each field, except the groups.
  package init(
    exists: Bool = false, id: String? = nil, age: Duration? = nil, idle: Duration? = nil, hasPIN: Bool = false,
    hasEmail: Bool = false,
    isEmailVerified: Bool = false, isPhoneVerified: Bool = false, factors: Set<ProviderName> = [],
    identities: [ProviderName: Identifier] = [:]
  ) {
    self.exists = exists
    self.id = id
    self.age = age
    self.idle = idle
    self.hasPIN = hasPIN
    self.hasEmail = hasEmail
    self.isEmailVerified = isEmailVerified
    self.isPhoneVerified = isPhoneVerified
    self.factors = factors
    self.identities = identities
  }
}

/// What `f.account.groups` is computed from when a function reads it.
package struct GroupFacts: Sendable {
  /// The groups that an operator added the account to. accounts.lua may not define all of them.
  package var listed: Set<GroupName> = []
  /// The verified identifiers of the account, at most one of each kind.
  package var identifiers: [Identifier] = []
  /// The session of the account, or the one that its flow would open now; nil if the function is called outside of
  /// both.
  package var session: SessionFacts?

  package init(listed: Set<GroupName> = [], identifiers: [Identifier] = [], session: SessionFacts? = nil) {
    self.listed = listed
    self.identifiers = identifiers
    self.session = session
  }
}

extension Facts {
  /// The facts that the functions of `groups` receive for this account.
  package var ofGroups: Facts {
    let session =
      session ?? account.groups.session
      ?? SessionFacts(account: account.id ?? "", passed: [:], age: .zero, aal: 1)
    var facts = Facts(
      now: now, account: account, client: ClientFacts(address: .unspecified), session: session)
    facts.identifiers = account.groups.identifiers
    facts.known = known
    return facts
  }
}

/// `f.client`.
package struct ClientFacts: Sendable {
  package var address: ClientAddress
  package var userAgent: String?
  /// Whether this device has never signed in to this account.
  package var isNewDevice: Bool
  /// Whether the flow began in another network.
  package var networkChanged: Bool
  /// Where the address is (`geo`).
  package var place: ClientPlace

  package init(
    address: ClientAddress, userAgent: String? = nil, isNewDevice: Bool = true, networkChanged: Bool = false,
    place: ClientPlace = ClientPlace()
  ) {
    self.address = address
    self.place = place
    self.userAgent = userAgent
    self.isNewDevice = isNewDevice
    self.networkChanged = networkChanged
  }
}

/// `f.limits.NAME`, before the current event is counted.
package struct LimitFacts: Sendable {
  package var name: String
  package var used: Int
  package var max: Int
  package var lockedUntil: Timestamp?

  package init(name: String, used: Int, max: Int, lockedUntil: Timestamp?) {
    self.name = name
    self.used = used
    self.max = max
    self.lockedUntil = lockedUntil
  }
}

/// `f.request`, for `decide`.
package struct RequestFacts: Sendable, Equatable {
  package var method: String
  /// Canonical: lower case, without the port.
  package var host: String
  /// As sent.
  package var path: String
  /// The text after `?`; empty without one.
  package var query: String

  package init(method: String, host: String, path: String, query: String) {
    self.method = method
    self.host = host
    self.path = path
    self.query = query
  }
}

/// `f.session`, for `decide`.
package struct SessionFacts: Sendable {
  package var account: String
  /// When each provider was last passed.
  package var passed: [ProviderName: Timestamp]
  package var age: Duration
  package var aal: Int
  /// The account's verified email address.
  package var email: String?
  package var phone: String?
  /// The groups and claims of the session.
  package var entitlements: Entitlements

  /// More than five parameters: one for each field.
  package init(
    account: String, passed: [ProviderName: Timestamp], age: Duration, aal: Int, email: String? = nil,
    phone: String? = nil,
    entitlements: Entitlements = .none
  ) {
    self.account = account
    self.passed = passed
    self.age = age
    self.aal = aal
    self.email = email
    self.phone = phone
    self.entitlements = entitlements
  }
}
