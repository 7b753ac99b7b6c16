import MoongateCore
import MoongateSDK

/// The numbers of the gateway's own facts. A script that reads `f.phone.country` asks Swift for a slot.
enum FactSlot: Int32, CaseIterable {
  case now, action, provider, flowName, flowPassed, identifier
  case phoneE164, emailAddress
  case accountExists, accountID, accountAge, accountIdle, accountHasPIN, accountHasEmail, accountEmailVerified,
    accountPhoneVerified,
    accountFactors, accountGroups
  case clientIP, clientNetwork, clientCountry, clientASN, clientUserAgent, clientNewDevice, clientNetworkChanged
  case clockSuspect
  case requestMethod, requestHost, requestPath, requestQuery
  case sessionAccount, sessionPassed, sessionAge, sessionAAL, sessionGroups, sessionClaims, sessionEmail, sessionPhone,
    sessionEmailVerified

  /// The path in scripts, after `f.`.
  var path: String {
    switch self {
    case .now: "now"
    case .action: "action"
    case .provider: "provider"
    case .flowName: "flow.name"
    case .flowPassed: "flow.passed"
    case .identifier: "identifier"
    case .phoneE164: "phone.e164"
    case .emailAddress: "email.address"
    case .accountExists: "account.exists"
    case .accountID: "account.id"
    case .accountAge: "account.age"
    case .accountIdle: "account.idle"
    case .accountHasPIN: "account.has_pin"
    case .accountHasEmail: "account.has_email"
    case .accountEmailVerified: "account.email_verified"
    case .accountPhoneVerified: "account.phone_verified"
    case .accountFactors: "account.factors"
    case .accountGroups: "account.groups"
    case .clientIP: "client.ip"
    case .clientNetwork: "client.network"
    case .clientCountry: "client.country"
    case .clientASN: "client.asn"
    case .clientUserAgent: "client.user_agent"
    case .clientNewDevice: "client.new_device"
    case .clientNetworkChanged: "client.network_changed"
    case .clockSuspect: "clock.suspect"
    case .requestMethod: "request.method"
    case .requestHost: "request.host"
    case .requestPath: "request.path"
    case .requestQuery: "request.query"
    case .sessionAccount: "session.account"
    case .sessionPassed: "session.passed"
    case .sessionAge: "session.age"
    case .sessionAAL: "session.aal"
    case .sessionGroups: "session.groups"
    case .sessionClaims: "session.claims"
    case .sessionEmail: "session.email"
    case .sessionPhone: "session.phone"
    case .sessionEmailVerified: "session.email_verified"
    }
  }

  /// Whether the value is or may contain a phone number, an email address or other personal data. Such values are
  /// stored only as keyed hashes.
  var namesPerson: Bool {
    switch self {
    case .identifier, .phoneE164, .emailAddress, .requestQuery, .sessionEmail, .sessionPhone, .sessionClaims: true
    default: false
    }
  }

  var isSet: Bool {
    switch self {
    case .flowPassed, .sessionPassed, .accountFactors, .accountGroups, .sessionGroups, .sessionClaims: true
    default: false
    }
  }

  /// The type in lua-language-server syntax.
  var type: String {
    switch self {
    case .now, .sessionAge, .sessionAAL: "integer"
    case .action: "\"send\"|\"verify\""
    case .provider, .flowName, .clientIP, .clientNetwork, .requestMethod, .requestHost, .requestPath, .requestQuery,
      .sessionAccount:
      "string"
    case .identifier, .phoneE164, .emailAddress, .accountID, .clientCountry, .clientUserAgent, .sessionEmail,
      .sessionPhone:
      "string?"
    case .accountAge, .accountIdle, .clientASN: "integer?"
    case .flowPassed, .accountFactors, .accountGroups, .sessionGroups: "table<string, true?>"
    case .sessionClaims: "table<string, string|number|boolean|nil>"
    case .sessionPassed: "table<string, integer?>"
    case .accountExists, .accountHasPIN, .accountHasEmail, .accountEmailVerified, .accountPhoneVerified,
      .clientNewDevice, .clientNetworkChanged,
      .clockSuspect, .sessionEmailVerified:
      "boolean"
    }
  }

  /// The description for editors, the reference and `moongate policy facts`.
  var help: String {
    switch self {
    case .now: "current time in Unix seconds"
    case .action: "the action to decide about"
    case .provider: "name of the step's provider"
    case .flowName: "name of the flow"
    case .flowPassed: "providers that were passed in this flow"
    case .identifier: "phone number or email address in canonical form"
    case .phoneE164: "phone number with + and country code"
    case .emailAddress: "email address in lower case"
    case .accountExists: "whether the account exists"
    case .accountID: "id of the account; nil if it does not exist"
    case .accountAge: "seconds since the account was created"
    case .accountIdle: "seconds since the account was last used; high if a phone number was reassigned"
    case .accountHasPIN: "whether the account has a PIN"
    case .accountHasEmail: "whether the account has an email address"
    case .accountEmailVerified: "whether the email address is verified"
    case .accountPhoneVerified: "whether the phone number is verified"
    case .accountFactors: "providers that store a secret of the account, such as a PIN or an authenticator app"
    case .accountGroups: "groups of accounts.lua that the account belongs to"
    case .clientIP: "IP address of the client"
    case .clientNetwork: "network of the client, /24 or /48"
    case .clientCountry: "country of the client's address in two letters, by geo.database; nil if it is unknown"
    case .clientASN: "number of the autonomous system of the client's address, by geo.asn; nil if it is unknown"
    case .clientUserAgent: "User-Agent header of the client"
    case .clientNewDevice: "whether the device has not signed in to this account before"
    case .clientNetworkChanged: "whether the client's network differs from that at the beginning of the flow"
    case .clockSuspect: "whether the system clock has jumped"
    case .requestMethod: "method in upper case"
    case .requestHost: "host in lower case"
    case .requestPath: "path as it was sent, percent-encoded"
    case .requestQuery: "query string without the ?"
    case .sessionAccount: "id of the account"
    case .sessionPassed: "providers that the session has passed, each with its time in Unix seconds"
    case .sessionAge: "seconds since the session began"
    case .sessionAAL: "authenticator assurance level: 1 for one factor, 2 for two"
    case .sessionGroups: "groups of accounts.lua that the account belongs to"
    case .sessionClaims: "claims of accounts.lua for the account"
    case .sessionEmail: "verified email address of the account in lower case"
    case .sessionPhone: "verified phone number of the account with + and country code"
    case .sessionEmailVerified: "whether the account has a verified email address"
    }
  }

  /// Whether functions of the audience receive the fact. A fact that the audience can never have is reported as unknown
  /// instead of being nil.
  func isAvailable(to audience: FunctionTable.Audience) -> Bool {
    switch audience {
    case .route: isOfRequest || isOfSession || isOfClient || self == .now || self == .clockSuspect
    // Only facts that change together with the account or its session. Groups and claims are evaluated again only after
    // such a change.
    case .entitlement: isOfAccount && self != .accountIdle || [.now, .sessionPassed, .sessionAAL].contains(self)
    case .identity: false
    case .flow: !isOfRequest && !isOfSession && self != .action
    case .policy: !isOfRequest && !isOfSession
    }
  }

  private var isOfRequest: Bool { path.hasPrefix("request.") }
  private var isOfSession: Bool { path.hasPrefix("session.") }
  private var isOfClient: Bool { path.hasPrefix("client.") }
  private var isOfAccount: Bool { path.hasPrefix("account.") || self == .phoneE164 || self == .emailAddress }

  /// The first slot of facts that providers declare.
  static let firstDeclared: Int32 = 100
  /// The first slot of the limits. Each limit has three: `f.limits.NAME.used`, `.max` and `.locked_until`.
  static let firstLimit: Int32 = 100_000
}
