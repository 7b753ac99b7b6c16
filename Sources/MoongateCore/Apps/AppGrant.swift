import MoongateSDK

/// An authorization that an app has redeemed, with all its tokens. A token is valid only as long as its grant.
package struct AppGrant: Sendable, Equatable {
  /// `ag_` followed by 128 random bits in base64url.
  package let id: String
  /// The `client_id`.
  package let app: String
  /// nil: the app acts for itself (`client_credentials`).
  package let account: String?
  /// The ID of the session; nil for an app of its own, and after the session has ended.
  package var session: String?
  /// What tokens say of the session (`sid`).
  package let sid: String?
  /// `Account.epoch` at the authorization.
  package let epoch: Int
  /// Whether it outlives the session (`offline_access`).
  package let isOffline: Bool
  package let scopes: [String]
  package let signIn: AppSignIn
  /// When the user authorized the app.
  package let createdAt: Timestamp
  package var usedAt: Timestamp
  /// The hash of the current refresh token; nil: it has none.
  package var refresh: TokenHash?
  /// The hash of the refresh token before.
  package var previous: TokenHash?
  /// When the refresh token was replaced last.
  package var refreshedAt: Timestamp?
  package var expiresAt: Timestamp
  package var endedAt: Timestamp?

  /// More than five parameters: one for each field.
  package init(
    id: String, app: String, account: String?, session: String?, sid: String?, epoch: Int, isOffline: Bool,
    scopes: [String], signIn: AppSignIn, createdAt: Timestamp, usedAt: Timestamp, refresh: TokenHash?,
    previous: TokenHash? = nil, refreshedAt: Timestamp? = nil, expiresAt: Timestamp, endedAt: Timestamp? = nil
  ) {
    self.id = id
    self.app = app
    self.account = account
    self.session = session
    self.sid = sid
    self.epoch = epoch
    self.isOffline = isOffline
    self.scopes = scopes
    self.signIn = signIn
    self.createdAt = createdAt
    self.usedAt = usedAt
    self.refresh = refresh
    self.previous = previous
    self.refreshedAt = refreshedAt
    self.expiresAt = expiresAt
    self.endedAt = endedAt
  }

  /// Generates an ID.
  package static func newID(_ random: any RandomSource) -> String { "ag_" + Base64URL.encode(random.bytes(16)) }
}

/// A grant with its account and its live session, as tokens are judged by it.
package struct LiveAppGrant: Sendable, Equatable {
  package let grant: AppGrant
  /// nil if it was deleted, or if the grant has none.
  package let account: Account?
  /// nil if it has ended or expired, or if the grant has none.
  package let session: Session?

  package init(grant: AppGrant, account: Account?, session: Session?) {
    self.grant = grant
    self.account = account
    self.session = session
  }

  /// The session by which `require`, groups and claims are judged: the live one; without it, what had been passed at
  /// the authorization. nil without an account.
  package var snapshot: SessionSnapshot? {
    guard let account else { return nil }
    if let session { return SessionSnapshot(session: session, account: account) }
    // No token has an empty hash, so this one is found nowhere.
    let past = Session(
      id: grant.sid ?? grant.id, token: TokenHash(bytes: []), account: account.id, createdAt: grant.createdAt,
      expiresAt: grant.expiresAt, idle: grant.expiresAt - grant.usedAt, lastSeenAt: grant.usedAt,
      passed: grant.signIn.passed, userAgent: nil)
    return SessionSnapshot(session: past, account: account)
  }
}

/// An app that a user has signed in to: a "connected app" of the account.
package struct AppConnection: Sendable, Equatable {
  package let account: String
  package let app: String
  /// The scopes that the app was given, and that the user has agreed to if `agreed`.
  package let scopes: [String]
  package let createdAt: Timestamp
  package let usedAt: Timestamp
  /// Whether the user was asked and has agreed.
  package let agreed: Bool

  /// More than five parameters: one for each field.
  package init(
    account: String, app: String, scopes: [String], createdAt: Timestamp, usedAt: Timestamp, agreed: Bool
  ) {
    self.account = account
    self.app = app
    self.scopes = scopes
    self.createdAt = createdAt
    self.usedAt = usedAt
    self.agreed = agreed
  }
}

/// A logout token that is due (OpenID Connect Back-Channel Logout 1.0).
package struct AppNotice: Sendable, Equatable {
  /// The ID of the grant.
  package let grant: String
  package let app: String
  package let account: String
  package let sid: String?
  /// When the session ended.
  package let since: Timestamp
  /// The number of earlier attempts.
  package let tries: Int

  /// More than five parameters: one for each field.
  package init(grant: String, app: String, account: String, sid: String?, since: Timestamp, tries: Int) {
    self.grant = grant
    self.app = app
    self.account = account
    self.sid = sid
    self.since = since
    self.tries = tries
  }
}

/// A request of a device without a browser (RFC 8628).
package struct DeviceRequest: Sendable, Equatable {
  /// What the user has decided.
  package enum Outcome: Sendable, Equatable {
    case pending
    case denied
    /// With the sealed `AuthorizationCode`.
    case allowed([UInt8])
  }

  /// The hash of the device code.
  package let device: TokenHash
  /// The keyed hash of the letters that the user types.
  package let user: TokenHash
  package let app: String
  package let scopes: [String]
  package let createdAt: Timestamp
  package let expiresAt: Timestamp
  /// The client address of the device; for IPv6 its /64.
  package let address: String
  package var polledAt: Timestamp?
  /// How long the device must wait between two polls, in seconds.
  package var interval: Int
  package var outcome: Outcome

  /// More than five parameters: one for each field.
  package init(
    device: TokenHash, user: TokenHash, app: String, scopes: [String], createdAt: Timestamp, expiresAt: Timestamp,
    address: String, polledAt: Timestamp? = nil, interval: Int = 5, outcome: Outcome = .pending
  ) {
    self.device = device
    self.user = user
    self.app = app
    self.scopes = scopes
    self.createdAt = createdAt
    self.expiresAt = expiresAt
    self.address = address
    self.polledAt = polledAt
    self.interval = interval
    self.outcome = outcome
  }
}
