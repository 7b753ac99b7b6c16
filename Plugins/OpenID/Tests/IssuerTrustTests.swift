import Foundation
import OpenID
import MoongateSDK
import Testing

/// Which addresses an issuer is believed about, which audiences, and when the userinfo endpoint is asked.
@Suite("What an issuer is trusted for") struct IssuerTrustTests {
  let web = TestProvider()

  init() { web.change { $0.published = [TestKey.rsa.published] } }

  private func proof(
    _ changes: [String: (any Sendable)?], issuer: String? = TestProvider.issuer, _ values: [String: SettingValue] = [:]
  ) async throws -> Proof? {
    if issuer == nil { web.change { $0.issuer = "https://accounts.google.com" } }
    let step = try await Attempted.begun(web, settings: Attempted.settings(issuer: issuer, values))
    let name = issuer ?? "https://accounts.google.com"
    return try await step.returns(try TestKey.rsa.sign(step.claims(["iss": name].merging(changes) { $1 }))).proof
  }

  /// Attack: an account at Google with an address elsewhere stays verified after the address has been reassigned.
  @Test(
    "Google is believed about Gmail addresses and those of the organization's domain",
    arguments: [
      ("asha@gmail.com", nil, true), ("asha@example.com", "example.com", true), ("asha@example.com", nil, false),
      ("asha@example.com", "example.org", false), ("asha@sub.example.com", "example.com", false),
      ("asha@gmail.com.example", nil, false), ("asha@example.com", "Example.COM", true),
      ("asha@example.com", "", false), ("asha@notgmail.com", "gmail.com", false),
    ] as [(String, String?, Bool)])
  func google(address: String, domain: String?, isTrusted: Bool) async throws {
    let proof = try #require(try await proof(["email": address, "hd": domain], issuer: nil))
    #expect(proof.proved.contains { $0.kind == .email } == isTrusted)
    #expect(proof.attested.map(\.value) == (isTrusted ? [] : [address]))
  }

  /// Attack: an issuer of the attacker's own, or one that verifies no addresses, says that owner@gmail.com is theirs,
  /// or that the domain of the address belongs to their organization (`hd`).
  @Test(
    "no other issuer is believed about gmail.com and hd",
    arguments: [("owner@gmail.com", nil), ("owner@gmail.com", "gmail.com"), ("owner@example.com", "example.com")]
      as [(String, String?)])
  func others(address: String, domain: String?) async throws {
    let proof = try #require(try await proof(["email": address, "hd": domain]))
    #expect(proof.proved.map(\.kind) == [.federated])
    #expect(proof.attested.map(\.value) == [address])
  }

  @Test("trusted domains replace the default, in any case of letters and without those below them") func named()
    async throws
  {
    for (address, isTrusted) in [("a@example.com", true), ("a@b.example.com", false), ("a@gmail.com", false)] {
      let proof = try #require(try await proof(["email": address], ["trusted_domains": ["EXAMPLE.com"]]))
      #expect(proof.proved.contains { $0.kind == .email } == isTrusted, "\(address)")
    }
    let claimed = try #require(
      try await proof(["email_verified": false], ["trusted_domains": ["example.com"]]))
    #expect(claimed.proved.count == 1 && claimed.claimed.count == 1, "an unverified address stays claimed")
    let none = try #require(try await proof(["email": "a@gmail.com"], issuer: nil, ["trusted_domains": []]))
    #expect(none.proved.map(\.kind) == [.federated], "an empty list trusts nothing")
  }

  @Test("email_verified = \"always\" is for directories without the claim") func always() async throws {
    let values: [String: SettingValue] = ["email_verified": "always", "trusted_domains": ["example.com"]]
    #expect(try await proof(["email_verified": nil], values)?.proved.map(\.kind) == [.federated, .email])
    #expect(try await proof(["email_verified": nil])?.claimed.map(\.value) == ["asha@example.com"])
  }

  // MARK: settings

  @Test(
    "wrong settings are reported",
    arguments: [
      ("https://login.example.com", ["trusted_domains": ["gmail.com"]], "trusted_domains"),
      ("https://login.example.com", ["trusted_domains": ["Outlook.com"]], "trusted_domains"),
      ("http://login.example.com", [:], "issuer"), ("login.example.com", [:], "issuer"),
      (nil, ["trusted_domains": ["yahoo.com"]], "trusted_domains"),
      ("https://localhost.example.com", ["trusted_domains": ["gmail.com"]], "trusted_domains"),
      (nil, ["trusted_domains": ["@example.com"]], "trusted_domains"),
      (nil, ["trusted_domains": ["*.example.com"]], "trusted_domains"),
      (nil, ["trusted_domains": ["example"]], "trusted_domains"), (nil, ["algorithms": ["HS256"]], "algorithms"),
      (nil, ["algorithms": ["none"]], "algorithms"), (nil, ["algorithms": []], "algorithms"),
    ] as [(String?, [String: SettingValue], String)])
  func findings(issuer: String?, values: [String: SettingValue], setting: String) {
    let found = OpenID().findings(in: Attempted.settings(issuer: issuer, values))
    #expect(found.map(\.setting) == [setting] && found.allSatisfy { $0.effect == .refused && !$0.message.isEmpty })
  }

  @Test(
    "right settings are not",
    arguments: [
      (nil, [:]), (nil, ["trusted_domains": ["gmail.com", "googlemail.com", "example.com"]]),
      ("https://login.example.com", ["trusted_domains": ["example.com"], "algorithms": ["EdDSA"]]),
    ] as [(String?, [String: SettingValue])])
  func noFindings(issuer: String?, values: [String: SettingValue]) {
    #expect(OpenID().findings(in: Attempted.settings(issuer: issuer, values)) == [])
  }

  @Test(
    "an issuer on this machine is for demos", arguments: ["http://127.0.0.1:3000/mock-google", "https://localhost"])
  func localIssuer(issuer: String) {
    let found = OpenID().findings(in: Attempted.settings(issuer: issuer, ["trusted_domains": ["gmail.com"]]))
    #expect(found.map(\.setting) == ["issuer"] && found.allSatisfy { $0.effect == .localOnly })
  }

  @Test("a directory whose addresses always count is a warning") func warning() {
    let found = OpenID().findings(in: Attempted.settings(["email_verified": "always"]))
    #expect(found.map(\.setting) == ["email_verified"] && found.allSatisfy { $0.effect == .warning })
  }

  @Test("only the named algorithms are accepted") func algorithms() async throws {
    web.change { $0.published = [TestKey.rsa.published, TestKey.ed25519.published] }
    let step = try await Attempted.begun(web, settings: Attempted.settings(["algorithms": ["EdDSA"]]))
    #expect(try await step.returns(try TestKey.ed25519.sign(step.claims())).proof != nil)
    #expect(try await step.returns(try TestKey.rsa.sign(step.claims())).reason == .oauthFailed)
    #expect(step.reasons.take() == ["refused: alg RS256", "alg RS256"])
  }

  // MARK: audiences (OpenID Connect Core 1.0 section 3.1.3.7)

  @Test(
    "audiences",
    arguments: [
      (["client", "web-shop", "project-1"], "client", true), (["client", "project-1"], "client", true),
      (["client"], nil, true),
      // Attacks: a token for another audience, for ours and an untrusted one, issued to another party, or by whom is
      // unknown.
      (["web-shop", "project-1"], "client", false), (["client", "other"], "client", false),
      (["client", "web-shop"], "web-shop", false), (["client", "web-shop"], nil, false), (["client"], "other", false),
      ([], "client", false),
    ] as [([String], String?, Bool)])
  func audiences(audiences: [String], party: String?, isAccepted: Bool) async throws {
    let values: [String: SettingValue] = ["audiences": ["web-shop", "project-1"]]
    #expect(try await proof(["aud": audiences, "azp": party], values).map { _ in true } ?? false == isAccepted)
  }

  @Test("subjects are any printable ASCII up to 255", arguments: ["night shift", String(repeating: "x", count: 255)])
  func subjects(subject: String) async throws {
    #expect(
      try await proof(["sub": subject])?.proved.first?.value == "https://accounts.example.com \(subject)")
  }

  // MARK: userinfo

  private func withUserInfo(
    _ info: [String: any Sendable], _ claims: [String: (any Sendable)?], _ use: String? = nil, token: String? = "acc3ss"
  ) async throws -> StepAnswer {
    web.change {
      $0.userInfo = info
      $0.accessToken = token
    }
    let step = try await Attempted.begun(web, settings: Attempted.settings(use.map { ["userinfo": .text($0)] } ?? [:]))
    return try await step.returns(try TestKey.rsa.sign(step.claims(claims)))
  }

  private static let bare: [String: (any Sendable)?] = [
    "email": nil, "email_verified": nil, "given_name": nil, "family_name": nil,
  ]
  private static let info: [String: any Sendable] = [
    "sub": "42", "email": "u2@example.org", "email_verified": true, "given_name": "First", "family_name": "Last",
  ]

  @Test("an address and a name that the ID token lacks come from userinfo") func missing() async throws {
    let proof = try #require(try await withUserInfo(Self.info, Self.bare).proof)
    #expect(proof.attested.map(\.value) == ["u2@example.org"])
    #expect(proof.firstName == "First" && proof.lastName == "Last")
    let request = try #require(web.requests.first { $0.url.hasSuffix("/userinfo") })
    #expect(request.headers.contains { $0.name == "Authorization" && $0.value == "Bearer acc3ss" })
  }

  @Test("userinfo is asked only if a claim is missing, always, or never") func use() async throws {
    let asked = { web.requests.count { $0.url.hasSuffix("/userinfo") } }
    #expect(try await withUserInfo(Self.info, [:]).proof?.firstName == "Asha")
    #expect(asked() == 0)
    #expect(try await withUserInfo(Self.info, [:], "always").proof?.firstName == "Asha", "the ID token's claims win")
    #expect(asked() == 1)
    #expect(try await withUserInfo(Self.info, Self.bare, "never").proof?.firstName == nil)
    #expect(try await withUserInfo(Self.info, Self.bare, token: nil).proof?.firstName == nil, "without an access token")
    #expect(asked() == 1)
    await #expect(throws: (any Error).self) { try await withUserInfo(Self.info, [:], "always", token: nil) }
  }

  /// Attack: the userinfo of another user, by an access token that was swapped (Core 5.3.2), brings their address.
  @Test("the subject of userinfo must be that of the ID token", arguments: ["43", "", nil] as [String?])
  func foreign(subject: String?) async throws {
    var info = Self.info
    info["sub"] = subject
    #expect(try await withUserInfo(info, Self.bare).reason == .oauthFailed)
  }

  /// Attack: `email_verified` from userinfo is a statement about its own address, not about the ID token's.
  @Test("a verification counts only for the address beside it") func verification() async throws {
    let claims: [String: (any Sendable)?] = ["email": "other@example.com", "email_verified": nil, "given_name": nil]
    let proof = try #require(try await withUserInfo(Self.info, claims).proof)
    #expect(proof.claimed.map(\.value) == ["other@example.com"] && proof.attested.isEmpty)
  }

  /// Attack: hd from userinfo would make Google authoritative for any domain.
  @Test("hd counts only in the ID token") func hostedDomain() async throws {
    web.change { $0.issuer = "https://accounts.google.com" }
    web.change {
      $0.userInfo = ["sub": "42", "email": "a@example.com", "email_verified": true, "hd": "example.com"]
      $0.accessToken = "acc3ss"
    }
    let step = try await Attempted.begun(web, settings: Attempted.settings(issuer: nil))
    let claims = try step.claims(Self.bare.merging(["iss": "https://accounts.google.com"]) { $1 })
    let proof = try #require(try await step.returns(try TestKey.rsa.sign(claims)).proof)
    #expect(proof.proved.map(\.kind) == [.federated] && proof.attested.map(\.value) == ["a@example.com"])
  }

  @Test("a userinfo endpoint that fails is a fault if it is always asked, not a sign-in without groups") func failing()
    async throws
  {
    web.change { $0.userInfoStatus = 500 }
    await #expect(throws: (any Error).self) { try await withUserInfo(Self.info, Self.bare, "always") }
  }

  @Test("a sign-in does not fail because a name is missing and userinfo fails") func failingForAName() async throws {
    web.change { $0.userInfoStatus = 500 }
    let proof = try #require(try await withUserInfo(Self.info, ["given_name": nil, "family_name": nil]).proof)
    #expect(proof.firstName == nil && proof.attested.map(\.value) == ["asha@example.com"])
    // An answer about another user is refused even so.
    web.change { $0.userInfoStatus = 200 }
    var foreign = Self.info
    foreign["sub"] = "43"
    #expect(try await withUserInfo(foreign, ["given_name": nil, "family_name": nil]).reason == .oauthFailed)
  }

  /// Attack: the ID token says `email_verified` and names no address, and userinfo names one that is not verified.
  @Test("a verification without an address verifies no other one") func verificationAlone() async throws {
    let info = Self.info.merging(["email_verified": false]) { $1 }
    var claims = Self.bare
    claims["email_verified"] = true
    let proof = try #require(try await withUserInfo(info, claims).proof)
    #expect(proof.claimed.map(\.value) == ["u2@example.org"] && proof.attested.isEmpty)
  }

  @Test("groups come from the ID token, or from userinfo that is always asked") func groups() async throws {
    let info = Self.info.merging(["groups": ["admins"]]) { $1 }
    #expect(try await proof(["groups": ["ops", "dev"]])?.proved.first?.groups == ["ops", "dev"])
    #expect(try await withUserInfo(info, Self.bare).proof?.proved.first?.groups == [])
    #expect(try await withUserInfo(info, [:], "always").proof?.proved.first?.groups == ["admins"])
    #expect(try await withUserInfo(info, ["groups": "admins"]).proof?.proved.first?.groups == [], "no list")
  }

  /// Attack: an app's ID token has no access token beside it, so signing in with it would remove the groups that only
  /// userinfo names.
  @Test("an app cannot sign in past userinfo") func appsToken() async throws {
    let step = try await Attempted.begun(web, settings: Attempted.settings(["userinfo": "always"]))
    #expect(try await step.brings(try TestKey.rsa.sign(step.claims())).reason == .oauthFailed)
  }
}
