/// The authorization of a service's token (`bearer` of a route). It is not stored: sealed, it is the ID of the grant,
/// which is the first part of the token's `jti`.
struct ServiceGrant: Codable, Sendable, Equatable {
  let app: String
  let account: String
  let session: String
  /// `Account.epoch` when the token was made.
  let epoch: Int
  /// The client for which the rules were met. They are judged for it again when the service asks about the token.
  let address: [UInt8]?
  let userAgent: String?

  /// - Parameter signIn: what the token says of the session.
  init(_ app: App, _ session: SessionSnapshot, _ signIn: AppSignIn) {
    self.app = app.id
    account = session.account.id
    self.session = session.session.id
    epoch = session.account.epoch
    address = signIn.address
    // It may be long, and only functions read it.
    userAgent = app.decide != nil || app.claims != nil ? signIn.userAgent : nil
  }

  /// - Parameter times: when the token was made, and when it expires.
  func grant(
    id: String, _ signIn: AppSignIn, scopes: [String], _ times: (made: Timestamp, end: Timestamp)
  ) -> AppGrant {
    AppGrant(
      id: id, app: app, account: account, session: session, sid: nil, epoch: epoch, isOffline: false, scopes: scopes,
      signIn: signIn, createdAt: times.made, usedAt: times.made, refresh: nil, expiresAt: times.end)
  }

  /// What rules read of the sign-in. The steps are those of the session.
  func signIn(at made: Timestamp) -> AppSignIn {
    var signIn = AppSignIn(nonce: nil, authTime: made, aal: 1, amr: [], passed: [])
    (signIn.address, signIn.userAgent) = (address, userAgent)
    return signIn
  }
}
