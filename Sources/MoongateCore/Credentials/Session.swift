import MoongateSDK

/// A session's token: 256 bits in base64url, 43 characters. It is the cookie's value.
package struct SessionToken: Sendable {
  package let secret: SecretText
  package let hash: TokenHash

  /// A new one.
  package init(from random: any RandomSource) {
    let text = Base64URL.encode(random.bytes(32))
    secret = SecretText(text)
    hash = TokenHash(of: text.utf8)
  }
}

/// Proof that an account passed certain steps at certain times.
package struct Session: Sendable, Equatable, Codable {
  /// Public name of the session, `se_…`; not a secret.
  package let id: String
  package var token: TokenHash
  package let account: String
  package let createdAt: Timestamp
  /// Absolute end.
  package let expiresAt: Timestamp
  /// How long it lives without a request.
  package let idle: Duration
  package var lastSeenAt: Timestamp
  /// When each provider was passed, in order.
  package var passed: [PassedStep]
  /// The browser or app that began it, for its owner to recognise; cut to 256 bytes.
  package var userAgent: String?
  /// The root domain that `token` is good for, where that is not `public_url`'s; nil: the token is the sign-in's own.
  package var domain: SessionDomain?

  package init(
    id: String, token: TokenHash, account: String, createdAt: Timestamp, expiresAt: Timestamp, idle: Duration,
    lastSeenAt: Timestamp,
    passed: [PassedStep], userAgent: String?
  ) {
    self.id = id
    self.token = token
    self.account = account
    self.createdAt = createdAt
    self.expiresAt = expiresAt
    self.idle = idle
    self.lastSeenAt = lastSeenAt
    self.passed = passed
    self.userAgent = userAgent
  }

  /// The same session under a new token. Its end stays.
  func renewed(_ token: TokenHash, of account: String, passed: [PassedStep], at now: Timestamp) -> Session {
    Session(
      id: id, token: token, account: account, createdAt: createdAt, expiresAt: expiresAt, idle: idle, lastSeenAt: now,
      passed: passed,
      userAgent: userAgent)
  }

  /// When it ends unless there is a request before.
  package var deadline: Timestamp { min(expiresAt, lastSeenAt + idle) }

  /// How many different factors were proved, 1 or more: 2 and above is more than one kind of step.
  package var assuranceLevel: Int {
    passed.contains { $0.isMultiFactor ?? false } ? 2 : max(1, min(2, Set(passed.map(\.provider)).count))
  }

  /// The latest sign-in or step-up.
  package var authenticatedAt: Timestamp { passed.map(\.at).max() ?? createdAt }
}

/// One step that was passed.
package struct PassedStep: Sendable, Equatable, Codable {
  package let provider: ProviderName
  package let at: Timestamp
  /// The identifier that was proved, as `KeyRing.proofHash`; nil where the step proved a secret, and in sessions that
  /// an older program began. It authorises changes only while the account holds that identifier.
  package let identifier: String?
  /// Whether the step proved two factors at once, such as a device and the fingerprint that unlocks it; nil: no.
  package let isMultiFactor: Bool?

  package init(provider: ProviderName, at: Timestamp, identifier: String? = nil, isMultiFactor: Bool = false) {
    self.provider = provider
    self.at = at
    self.identifier = identifier
    self.isMultiFactor = isMultiFactor ? true : nil
  }
}

/// A live session with its account: what a request is judged by.
package struct SessionSnapshot: Sendable, Equatable {
  package let session: Session
  package let account: Account
  /// The token for programs that stands in place of a session; nil: a person is signed in.
  package let token: AccessToken?

  package init(session: Session, account: Account, token: AccessToken? = nil) {
    self.session = session
    self.account = account
    self.token = token
  }
}
