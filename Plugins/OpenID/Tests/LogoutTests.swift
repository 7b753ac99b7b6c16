import Crypto
import Foundation
import OpenID
import MoongateSDK
import Synchronization
import Testing

/// Sign-out by the issuer.
@Suite("Back-channel logout") struct LogoutTests {
  /// The sessions that were ended.
  private final class Ended: Sendable {
    private let calls = Mutex<[String]>([])
    let isDown = Mutex(false)

    var all: [String] { calls.withLock { $0 } }

    func end(_ identity: Identifier?, _ session: String?) throws -> Int {
      if isDown.withLock({ $0 }) { throw Unexpected() }
      calls.withLock { $0.append("\(identity?.value ?? "anybody") \(session ?? "all")") }
      return 1
    }
  }

  private let web = TestProvider()
  private let ended = Ended()
  private let store = MemoryKeyValueStore(clock: StepClock { TestProvider.now })
  private let reasons = Reasons()
  private static let plugin = OpenID(.openID)

  init() { web.change { $0.published = [TestKey.rsa.published] } }

  private static func claims(_ changes: [String: Any?] = [:]) -> [String: Any] {
    var claims: [String: Any] = [
      "iss": TestProvider.issuer, "aud": "client", "sub": "42", "iat": Double(TestProvider.now) / 1000, "jti": "j1",
      "events": ["http://schemas.openid.net/event/backchannel-logout": [String: Any]()],
    ]
    for (name, value) in changes { claims[name] = value }
    return claims
  }

  private func deliver(_ body: String, _ plugin: OpenID = OpenID(.openID)) async throws -> WebhookAnswer {
    let tools = StepTools(
      randomBytes: { [UInt8](repeating: 7, count: $0) }, settings: Attempted.settings(), web: web,
      log: StepLog(explaining: { [reasons] in reasons.add($0) }) { _, _, _ in },
      clock: StepClock { TestProvider.now }, store: store,
      sessions: SiteSessions { [ended] identity, session in try ended.end(identity, session) })
    return try await plugin.receive(WebhookRequest(headers: [], body: Array(body.utf8), remote: ""), with: tools)
  }

  private func deliver(_ claims: [String: Any], by key: TestKey = .rsa) async throws -> WebhookAnswer {
    try await deliver("logout_token=" + (try key.sign(["alg": "RS256", "kid": "rsa", "typ": "logout+jwt"], claims)))
  }

  /// What the provider calls a session at the issuer: of the same length for an id of any.
  private static func named(_ id: String, at issuer: String = TestProvider.issuer) -> String {
    Base64URL.encode(Array(SHA256.hash(data: Data("\(issuer) \(id)".utf8))))
  }

  @Test("ends the sessions of the subject, or that of one session at the issuer") func ends() async throws {
    #expect(try await deliver(Self.claims()) == .accepted())
    #expect(try await deliver(Self.claims(["jti": "j2", "sid": "s-1"])) == .accepted())
    #expect(ended.all == ["\(TestProvider.issuer) 42 all", "\(TestProvider.issuer) 42 \(Self.named("s-1"))"])
  }

  /// Section 2.4 allows it, and some issuers' ids are long.
  @Test("ends the sessions of one session at the issuer whose user the token does not name") func endsWithoutAUser()
    async throws
  {
    let long = String(repeating: "s", count: 5_000)
    #expect(try await deliver(Self.claims(["sub": nil, "sid": "s-1"])) == .accepted())
    #expect(try await deliver(Self.claims(["sub": nil, "sid": long, "jti": "j2"])) == .accepted())
    #expect(ended.all == ["anybody \(Self.named("s-1"))", "anybody \(Self.named(long))"])
    // Attack: such a token is sent again.
    #expect(try await deliver(Self.claims(["sub": nil, "sid": "s-1"])) == .refused(.malformed))
    #expect(ended.all.count == 2)
  }

  /// Attack: a token that was once sent is sent again, after the user has signed in again.
  @Test("a token works once") func replay() async throws {
    #expect(try await deliver(Self.claims()) == .accepted())
    #expect(try await deliver(Self.claims()) == .refused(.malformed))
    #expect(ended.all.count == 1 && reasons.take().last == "logout token: jti used before")
  }

  /// The issuer sends it again if the store did not answer. It must not be refused then.
  @Test("a token that failed by our fault works when it is sent again") func again() async throws {
    ended.isDown.withLock { $0 = true }
    await #expect(throws: (any Error).self) { try await deliver(Self.claims()) }
    ended.isDown.withLock { $0 = false }
    #expect(try await deliver(Self.claims()) == .accepted())
  }

  private static let now = Double(TestProvider.now) / 1000

  /// Attacks: another issuer, another client, an old token, an ID token, and one without what identifies it.
  @Test(
    "any other token ends nothing",
    arguments: [
      ("iss", "https://evil.example.com"), ("aud", "other"), ("aud", ["client", "other"]), ("aud", nil),
      ("iat", now - 301), ("iat", now + 61), ("iat", nil), ("exp", now - 61), ("exp", "soon"), ("events", nil),
      ("events", [String: String]()), ("events", ["http://schemas.openid.net/event/backchannel-logout": 1]),
      ("events", "http://schemas.openid.net/event/backchannel-logout"), ("nonce", "n"), ("sub", nil), ("sub", ""),
      ("sub", 42), ("jti", nil), ("jti", ""), ("jti", String(repeating: "j", count: 201)), ("sid", 1), ("sid", ""),
      ("sid", String(repeating: "s", count: 16_384)),
    ] as [(String, (any Sendable)?)])
  func forged(claim: String, value: (any Sendable)?) async throws {
    var claims = Self.claims()
    claims[claim] = value
    #expect(try await deliver(claims) == .refused(.malformed))
    // A subject that is there is checked, whatever else the token names.
    if claim == "sub", value != nil {
      claims["sid"] = "s-1"
      #expect(try await deliver(claims) == .refused(.malformed))
    }
    #expect(ended.all == [])
  }

  @Test("a token with another key, without a signature, or no token at all ends nothing") func signatures() async throws
  {
    #expect(try await deliver(Self.claims(), by: .otherRSA) == .refused(.malformed))
    let none = try part(["alg": "none"]) + "." + part(Self.claims()) + "."
    for body in ["logout_token=" + none, "logout_token=", "", "logout_token=a&logout_token=b", "token=x", "%"] {
      #expect(try await deliver(body) == .refused(.malformed))
    }
    #expect(ended.all == [])
  }

  /// Attack: the user's own ID token, which every app of theirs has.
  @Test("an ID token is no logout token") func idToken() async throws {
    let step = try await Attempted.begun(web)
    let token = try TestKey.rsa.sign(["alg": "RS256", "kid": "rsa"], step.claims(["jti": "j9"]))
    #expect(try await deliver("logout_token=" + token) == .refused(.malformed))
    #expect(reasons.take().last == "logout token: events")
  }

  @Test("a sign-in names the session at the issuer") func session() async throws {
    let step = try await Attempted.begun(web)
    let token = { (sid: Any?) in try TestKey.rsa.sign(["alg": "RS256", "kid": "rsa"], step.claims(["sid": sid])) }
    for id in ["s-1", String(repeating: "s", count: 5_000)] {
      let name = try #require(try await step.returns(try token(id)).proof?.siteSession)
      #expect(name == Self.named(id) && name.utf8.count <= Proof.longestSiteSession)
    }
    for odd in [nil, 7, ""] as [Any?] {
      #expect(try await step.returns(try token(odd)).proof?.siteSession == nil)
    }
  }

  // MARK: in the user's browser

  /// Attacks: the same id at another issuer, and an issuer with a site that does not issue ID tokens.
  @Test("a page of the issuer names the session that a sign-in has named") func embedded() throws {
    let settings = Attempted.settings(issuer: "https://login.example.com/realms/one")
    let ended = try #require(
      OpenID(.openID).embeddedSignOut(issuer: TestProvider.issuer, session: "s-1", settings: settings))
    #expect(ended == EmbeddedSignOut(siteSession: Self.named("s-1"), origin: "https://login.example.com"))
    let other = OpenID(.openID).embeddedSignOut(issuer: "https://other.example.com", session: "s-1", settings: settings)
    #expect(other?.siteSession == Self.named("s-1", at: "https://other.example.com"))
    #expect(other != ended)
    #expect(OpenID(.oauth).embeddedSignOut(issuer: TestProvider.issuer, session: "s-1", settings: settings) == nil)
  }

  // MARK: signing out there

  private func leads(_ values: [String: SettingValue], _ end: String?) async throws -> String? {
    web.change { $0.discovery = end.map { ["end_session_endpoint": $0] } ?? [:] }
    let tools = StepTools(
      randomBytes: { [UInt8](repeating: 7, count: $0) }, settings: Attempted.settings(values), web: web,
      clock: StepClock { TestProvider.now })
    return try await OpenID(.openID).signOutAddress(returningTo: "https://auth.example.com/auth/login", with: tools)
  }

  @Test("a user who signs out is led to the issuer if the settings say so") func leadsThere() async throws {
    let end = TestProvider.issuer + "/end"
    let query = "client_id=client&post_logout_redirect_uri=https%3A%2F%2Fauth.example.com%2Fauth%2Flogin"
    #expect(try await leads(["sign_out": "there"], end) == "\(end)?\(query)")
    #expect(try await leads(["sign_out": "there"], end + "?x=1") == "\(end)?x=1&\(query)")
    #expect(try await leads(["sign_out": "here"], end) == nil)
    #expect(try await leads([:], end) == nil)
    #expect(try await leads(["sign_out": "there"], nil) == nil)
    // Attack: an address that is not encrypted, or not one of the web.
    for odd in ["http://accounts.example.com/end", "javascript:alert(1)"] {
      await #expect(throws: (any Error).self) { try await leads(["sign_out": "there"], odd) }
    }
  }

  @Test("sites without ID tokens have no such call") func oauth() {
    #expect(OpenID(.openID).descriptor.receivesWebhooks && !OpenID(.oauth).descriptor.receivesWebhooks)
  }
}
