import MoongateSDK

/// A validated authorization request (OpenID Connect Core 1.0 section 3.1.2.1). It is kept sealed in the address of its
/// continuation, so nothing is stored before somebody has agreed, and any gateway of the installation continues it.
package struct AuthorizationRequest: Codable, Sendable, Equatable {
  /// How long it can be continued.
  package static let lifetime: Duration = .seconds(3600)
  /// How long a pushed one (RFC 9126) can be used.
  package static let pushedLifetime: Duration = .seconds(90)
  package static let longestState = 2048
  package static let longestNonce = 512
  /// The maximum length of `ui_locales` and `login_hint` in bytes.
  package static let longestHint = 255

  /// How the answer reaches the app.
  package enum ResponseMode: String, Codable, Sendable {
    case query
    case formPost = "form_post"
  }

  package var grant: Grant
  package var state: String?
  package var nonce: String?
  /// `none`, `login`, `consent`, `select_account`.
  package var prompt: Set<String> = []
  /// The maximum age of the authentication, in seconds.
  package var maxAge: Int?
  package var loginHint: String?
  package var uiLocales: String?
  package var acrValues: [String] = []
  /// The values of an essential `acr` in `claims`; empty: none is essential.
  package var essentialACR: [String] = []
  /// The `sub` of an `id_token_hint`, or the one that `claims` asks for.
  package var hintedSubject: String?
  package var responseMode = ResponseMode.query
  /// The ID of the account whose user has agreed, on a page of this browser; nil: nobody yet.
  package var agreed: String?
  /// The hash of the flow cookie of the browser that began it; nil for a pushed request that no browser has.
  package var browser: TokenHash?
  package var beganAt: Timestamp
  /// 128 random bits in base64url, by which a pushed request is marked as used.
  package var id: String

  package init(grant: Grant, browser: TokenHash?, beganAt: Timestamp, random: any RandomSource) {
    self.grant = grant
    self.browser = browser
    self.beganAt = beganAt
    id = Base64URL.encode(random.bytes(16))
  }

  /// The hash under which a pushed request is marked as used.
  package var spent: TokenHash { TokenHash(of: "pushed request \(id)".utf8) }
}

/// The content of an authorization code: permission of one app to get the tokens of one authorization, once, for a
/// short time. The code is this content, sealed.
package struct AuthorizationCode: Codable, Sendable, Equatable {
  package let grant: Grant
  /// The ID that the `AppGrant` gets.
  package let grantID: String
  package let account: String
  package let epoch: Int
  /// The ID of the session.
  package let session: String
  package let signIn: AppSignIn
  package let issuedAt: Timestamp
  package let expiresAt: Timestamp

  /// More than five parameters: one for each field.
  package init(
    grant: Grant, grantID: String, account: String, epoch: Int, session: String, signIn: AppSignIn,
    issuedAt: Timestamp, expiresAt: Timestamp
  ) {
    self.grant = grant
    self.grantID = grantID
    self.account = account
    self.epoch = epoch
    self.session = session
    self.signIn = signIn
    self.issuedAt = issuedAt
    self.expiresAt = expiresAt
  }

  /// The hash under which the code is marked as used.
  package var spent: TokenHash { TokenHash(of: "authorization code \(grantID)".utf8) }
}

/// What the tokens of an authorization say about the sign-in.
package struct AppSignIn: Codable, Sendable, Equatable {
  /// The maximum length of `userAgent`, in Unicode scalars.
  static let longestUserAgent = 256

  package let nonce: String?
  package let authTime: Timestamp
  /// The authentication assurance level that tokens state: 1 or 2.
  package let aal: Int
  /// RFC 8176.
  package let amr: [String]
  /// The steps that the session had passed. `require` is judged by them when the session is gone.
  package let passed: [PassedStep]
  /// The client address of the user, whose bytes they are. Rules are judged by it, also when the app's server calls.
  var address: [UInt8]?
  /// The `User-Agent` of the user's browser, truncated.
  var userAgent: String?

  package init(nonce: String?, authTime: Timestamp, aal: Int, amr: [String], passed: [PassedStep]) {
    self.nonce = nonce
    self.authTime = authTime
    self.aal = aal
    self.amr = amr
    self.passed = passed
  }

  /// `acr` of a level.
  package static func acr(_ level: Int) -> String { "urn:moongate:aal:\(level)" }

  /// The level of an `acr`; nil if it is not ours.
  package static func level(of acr: String) -> Int? { [1, 2].first { Self.acr($0) == acr } }
}
