import MoongateSDK

/// A session's token: 256 random bits in base64url, 43 characters. It is the cookie's value.
package struct SessionToken: Sendable {
  package let secret: SecretText
  package let hash: TokenHash

  /// Generates a token.
  package init(from random: any RandomSource) {
    let text = Base64URL.encode(random.bytes(32))
    secret = SecretText(text)
    hash = TokenHash(of: text.utf8)
  }
}

/// A session: proof that an account passed certain steps at certain times.
package struct Session: Sendable, Equatable, Codable {
  /// The public ID of the session, `se_…`. Not a secret.
  package let id: String
  package var token: TokenHash
  package let account: String
  package let createdAt: Timestamp
  /// The absolute expiry.
  package let expiresAt: Timestamp
  /// The idle timeout.
  package let idle: Duration
  package var lastSeenAt: Timestamp
  /// The passed steps, in order.
  package var passed: [PassedStep]
  /// The passed steps that count towards routes, guarantees and the assurance level.
  ///
  /// Attack: a thief who holds a session for a minute adds an address of their own, or resets the PIN by the same SIM,
  /// and passes the new one as a second factor.
  package var counted: [PassedStep] { passed.counted }
  /// The `User-Agent` of the browser or app that began it, for its owner to recognise. Truncated to 256 bytes.
  package var userAgent: String?
  /// The client address from which the session began, for its owner to recognise; nil: not known.
  package var address: String?
  /// The client address of `lastSeenAt`; nil: not known.
  package var lastAddress: String?
  /// Whether the user chose to stay signed in. The browser then keeps the cookie until the session ends.
  package var isRemembered = false
  /// The root domain that `token` is valid for, if that is not `public_url`'s; nil if the token is the sign-in's own.
  package var domain: SessionDomain?

  /// More than five parameters: one for each field.
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

  /// The same session with a new token. Its expiry does not change.
  /// - Parameter use: the use of the session that renews it.
  func renewed(_ token: TokenHash, of account: String, passed: [PassedStep], by use: SessionUse) -> Session {
    var session = Session(
      id: id, token: token, account: account, createdAt: createdAt, expiresAt: expiresAt, idle: idle,
      lastSeenAt: use.at, passed: passed, userAgent: userAgent)
    session.address = address
    session.lastAddress = use.address ?? lastAddress
    session.isRemembered = isRemembered
    return session
  }

  /// When the session ends if no further request comes.
  package var deadline: Timestamp { min(expiresAt, lastSeenAt + idle) }

  /// How long a browser keeps the session's cookie; nil: until the browser is closed.
  package func cookieLifetime(at now: Timestamp) -> Duration? { isRemembered ? max(.zero, expiresAt - now) : nil }

  /// The authentication assurance level: 2 if two different factors were proved, otherwise 1.
  package var assuranceLevel: Int { Self.assuranceLevel(of: counted) }

  package static func assuranceLevel(of steps: [PassedStep]) -> Int { max(1, min(2, factorCount(of: steps))) }

  /// The number of different factors that were proved. A step that proves two at once counts as two.
  package static func factorCount(of steps: [PassedStep]) -> Int {
    max(Set(steps.map(\.provider)).count, steps.contains { $0.isMultiFactor ?? false } ? 2 : 0)
  }

  /// The time of the latest sign-in or step-up.
  package var authenticatedAt: Timestamp { passed.map(\.at).max() ?? createdAt }
}

/// A use of a session: when, and from which client address.
package struct SessionUse: Sendable, Equatable {
  package let at: Timestamp
  /// nil: not known.
  package let address: String?

  package init(at: Timestamp, address: String? = nil) {
    self.at = at
    self.address = address
  }
}

/// A step that was passed.
package struct PassedStep: Sendable, Equatable, Codable {
  package let provider: ProviderName
  package let at: Timestamp
  /// The identifier that was proved, as `KeyRing.proofHash`; nil if the step proved a secret. The step authorises
  /// changes only while the account holds that identifier.
  package let identifier: String?
  /// Whether the step proved two factors at once, such as a device and the fingerprint that unlocks it; nil: no.
  package let isMultiFactor: Bool?
  /// Set if the step proved an identifier or a factor that was too new: it signed the user in, and counts for nothing
  /// else. From this time on, another proof counts.
  package var tooNewUntil: Timestamp?
  /// The user's session at the site that proved the identity, as `KeyRing.siteSessionHash`; nil if it said none.
  package var siteSession: String?

  package init(provider: ProviderName, at: Timestamp, identifier: String? = nil, isMultiFactor: Bool = false) {
    self.provider = provider
    self.at = at
    self.identifier = identifier
    self.isMultiFactor = isMultiFactor ? true : nil
  }

  /// The same step of something that is too new until then; nil: it is not.
  package func tooNew(until: Timestamp?) -> PassedStep {
    var step = self
    step.tooNewUntil = until
    return step
  }
}

extension [PassedStep] {
  /// The steps that authorise something: those by nothing that is too new.
  package var counted: [PassedStep] { filter { $0.tooNewUntil == nil } }

  /// The time of the latest step of each provider.
  package var latest: [ProviderName: Timestamp] {
    reduce(into: [:]) { $0[$1.provider] = Swift.max($1.at, $0[$1.provider] ?? $1.at) }
  }
}

/// A live session with its account, as requests are authorised by it.
package struct SessionSnapshot: Sendable, Equatable {
  package let session: Session
  package let account: Account
  /// The access token that is used in place of a session; nil for a user's session.
  package let token: AccessToken?

  package init(session: Session, account: Account, token: AccessToken? = nil) {
    self.session = session
    self.account = account
    self.token = token
  }
}
