import Foundation
import MoongateSDK
import OpenID
import Testing

/// The issuer is asked about an identity again by its refresh token.
@Suite("Rechecks by a refresh token") struct RecheckTests {
  private struct Denied: Error {}

  private let web = TestProvider()
  private let kept = Reasons()
  private static let identity = Identifier(
    kind: .federated, value: "\(TestProvider.issuer) 42", display: "asha@example.com", groups: ["ops"])

  init() { web.change { $0.published = [TestKey.rsa.published] } }

  private static func settings(_ values: [String: SettingValue] = [:], issuer: String? = TestProvider.issuer)
    -> StepSettings
  {
    Attempted.settings(issuer: issuer, values.merging(["recheck": "1h"]) { first, _ in first })
  }

  private static func claims(_ changes: [String: Any?] = [:]) -> [String: Any] {
    let seconds = Double(TestProvider.now) / 1000
    var claims: [String: Any] = [
      "iss": TestProvider.issuer, "aud": "client", "sub": "42", "iat": seconds, "exp": seconds + 3600,
      "email": "asha@example.com", "given_name": "Asha", "groups": ["dev"],
    ]
    for (name, value) in changes { claims[name] = value }
    return claims
  }

  private func recheck(
    _ settings: StepSettings = settings(), plugin: OpenID = OpenID(.openID), identity: Identifier = identity,
    mapping: IdentityMapper = IdentityMapper()
  ) async throws -> RecheckAnswer {
    let tools = StepTools(
      randomBytes: { [UInt8](repeating: 7, count: $0) }, settings: settings, web: web,
      clock: StepClock { TestProvider.now }, identity: mapping)
    let known = RecheckedIdentity(identity: identity, state: Array("old token".utf8)) { [kept] state in
      kept.add(String(decoding: state, as: UTF8.self))
    }
    return try await plugin.recheck(known, with: tools)
  }

  /// What the token endpoint was asked last.
  private var asked: String {
    web.requests.last { $0.url.hasSuffix("/token") }.map { String(decoding: $0.body, as: UTF8.self) } ?? ""
  }

  @Test("the claims of the new ID token replace groups") func confirms() async throws {
    let token = try TestKey.rsa.sign(Self.claims())
    web.change { $0.idToken = token }
    guard case .confirmed(let identity) = try await recheck() else { throw Unexpected() }
    #expect(identity == Self.identity && identity.groups == ["dev"])
    #expect(asked == "grant_type=refresh_token&refresh_token=\(PercentEncoding.encode("old token"))")
    #expect(kept.take().isEmpty, "the site has not replaced the token")
  }

  /// Attack on ourselves: the token is replaced, the answer is of no use, and the old token is used again.
  @Test("a new refresh token is kept before the rest is read") func rotates() async throws {
    web.change { ($0.idToken, $0.refreshToken) = ("no token", "new token") }
    await #expect(throws: (any Error).self) { try await recheck() }
    #expect(kept.take() == ["new token"])
  }

  @Test(
    "an error of the token ends it",
    arguments: ["invalid_grant", "interaction_required", "login_required", "consent_required"])
  func ends(error: String) async throws {
    web.change { ($0.tokenStatus, $0.tokenError) = (400, error) }
    guard case .ended(let because) = try await recheck() else { throw Unexpected() }
    #expect(because.contains(error))
  }

  /// Attack: an overloaded or broken site, or a wrong secret of the client, signs everybody out.
  @Test(
    "no other answer ends it",
    arguments: [
      (500, "invalid_grant"), (503, "invalid_grant"), (429, "slow_down"), (400, "invalid_request"),
      (401, "invalid_client"), (400, "unauthorized_client"), (404, ""),
    ])
  func unanswered(status: Int, error: String) async throws {
    web.change { ($0.tokenStatus, $0.tokenError) = (status, error) }
    await #expect(throws: (any Error).self) { try await recheck() }
  }

  @Test("no answer at all, and one that is too large, end nothing") func down() async throws {
    web.change { $0.isDown = true }
    await #expect(throws: (any Error).self) { try await recheck() }
    web.change { state in
      state.isDown = false
      state.others["\(TestProvider.issuer)/token"] = (200, String(repeating: "[", count: 100_000))
    }
    await #expect(throws: (any Error).self) { try await recheck() }
  }

  /// Attack: the site answers about another of its users, whose groups this one would get, or whom the policy denies.
  @Test("a token of another user is refused before the policy sees it") func otherSubject() async throws {
    let token = try TestKey.rsa.sign(Self.claims(["sub": "43", "groups": ["admins"]]))
    web.change { $0.idToken = token }
    let seen = Reasons()
    await #expect(throws: (any Error).self) {
      try await recheck(
        mapping: IdentityMapper { _ in
          seen.add("claims")
          return nil
        })
    }
    #expect(seen.take().isEmpty)
  }

  /// Attack: the token endpoint is not believed without the checks of a sign-in.
  @Test("a token that a sign-in refuses is refused") func forged() async throws {
    let changes: [[String: Any?]] = [["aud": "other"], ["iss": "https://evil.example.com"], ["exp": 1_000_000.0]]
    for change in changes {
      let token = try TestKey.rsa.sign(Self.claims(change))
      web.change { $0.idToken = token }
      await #expect(throws: (any Error).self) { try await recheck() }
    }
    let token = try TestKey.otherRSA.sign(Self.claims())
    web.change { $0.idToken = token }
    await #expect(throws: (any Error).self) { try await recheck() }
  }

  /// Attack on ourselves: an operator changes `issuer`. The tokens of one site are sent to the other, which refuses
  /// them.
  @Test("a token of another issuer is not sent") func otherIssuer() async throws {
    web.change { ($0.tokenStatus, $0.tokenError) = (400, "invalid_grant") }
    let other = Identifier(kind: .federated, value: "https://old.example.com 42", display: "")
    await #expect(throws: (any Error).self) { try await recheck(identity: other) }
    #expect(asked.isEmpty)
  }

  /// Attack on ourselves: userinfo is down, and the policy denies users without an address.
  @Test("userinfo that is down ends nothing") func userInfoDown() async throws {
    let token = try TestKey.rsa.sign(Self.claims(["email": nil]))
    web.change { state in
      (state.idToken, state.accessToken) = (token, "access")
      (state.userInfo, state.userInfoStatus) = (["sub": "42"], 503)
    }
    let mapping = IdentityMapper { claims in
      guard claims["email"] != nil else { throw Denied() }
      return nil
    }
    await #expect {
      try await recheck(Self.settings(["userinfo": "missing"]), mapping: mapping)
    } throws: { !($0 is Denied) }
  }

  @Test("a new refresh token that cannot be kept is a fault") func tooLong() async throws {
    let token = try TestKey.rsa.sign(Self.claims())
    web.change { ($0.idToken, $0.refreshToken) = (token, String(repeating: "x", count: 16_385)) }
    await #expect(throws: (any Error).self) { try await recheck() }
    #expect(kept.take().isEmpty)
  }

  /// Attack: groups of which some come from the ID token would be lost where only userinfo is read.
  @Test("without an ID token, only userinfo = always is enough") func withoutToken() async throws {
    web.change { state in
      (state.accessToken, state.userInfo) = ("access", ["sub": "42", "groups": ["info"]])
      state.others["\(TestProvider.issuer)/token"] = (200, #"{"access_token":"access"}"#)
    }
    await #expect(throws: (any Error).self) { try await recheck() }
    guard case .confirmed(let identity) = try await recheck(Self.settings(["userinfo": "always"])) else {
      throw Unexpected()
    }
    #expect(identity.groups == ["info"])
    web.change { $0.userInfo = ["sub": "43"] }
    await #expect(throws: (any Error).self) { try await recheck(Self.settings(["userinfo": "always"])) }
  }

  @Test("a sign-in keeps the refresh token only with the setting") func signIn() async throws {
    for (settings, state) in [(Self.settings(), "fresh"), (Attempted.settings(), nil)] {
      let step = try await Attempted.begun(web, plugin: OpenID(.openID), settings: settings)
      web.change { $0.refreshToken = "fresh" }
      let proof = try await step.returns(try TestKey.rsa.sign(try step.claims())).proof
      #expect(proof?.recheck.map { String(decoding: $0, as: UTF8.self) } == state)
      #expect(step["scope"]?.contains("offline_access") == (state != nil))
    }
    let step = try await Attempted.begun(web, plugin: OpenID(.openID), settings: Self.settings())
    web.change { $0.refreshToken = nil }
    let proof = try await step.returns(try TestKey.rsa.sign(try step.claims())).proof
    #expect(proof != nil && proof?.recheck == nil)
    #expect(step.reasons.take().contains { $0.contains("no refresh token") })
  }

  @Test("Google is asked for a refresh token in its own way") func google() async throws {
    web.change { $0.issuer = "https://accounts.google.com" }
    let step = try await Attempted.begun(web, settings: Self.settings(issuer: nil))
    #expect(step["access_type"] == "offline" && step["prompt"] == "consent")
    #expect(step["scope"] == "openid email profile")
    let plain = try await Attempted.begun(web, settings: Attempted.settings(issuer: nil))
    #expect(plain["access_type"] == nil && plain["prompt"] == nil)
    let own = try await Attempted.begun(web, settings: Self.settings(["prompt": "login"], issuer: nil))
    #expect(own["prompt"] == "login")
  }

  @Test("a preset without refresh tokens says so") func presets() throws {
    let linkedIn = Self.settings(["preset": "linkedin"], issuer: nil)
    #expect(OpenID(.openID).findings(in: linkedIn).contains { $0.setting == "recheck" })
    #expect(!OpenID(.openID).findings(in: Self.settings()).contains { $0.setting == "recheck" })
  }
}
