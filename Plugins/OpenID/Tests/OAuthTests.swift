import Foundation
import OpenID
import MoongateSDK
import Synchronization
import Testing

/// Sites without ID tokens, with answers of the shapes that their documentation shows.
@Suite("Sites of OAuth 2.0") struct OAuthTests {
  struct Documented: Sendable, CustomTestStringConvertible {
    let preset: String
    var settings: [String: SettingValue] = [:]
    let authorize: String
    let token: String
    let scopes: String
    /// By address.
    let answers: [String: String]
    let identity: String
    var attested: [String] = []
    var claimed: [String] = []
    var names: [String] = []
    var groups: [String] = []
    var data: [String: String] = [:]

    var testDescription: String { preset }
  }

  static let documented: [Documented] = [
    // docs.github.com/en/rest/users: the subject is a number, addresses come from a second call.
    Documented(
      preset: "github", authorize: "https://github.com/login/oauth/authorize",
      token: "https://github.com/login/oauth/access_token", scopes: "read:user user:email",
      answers: [
        "https://api.github.com/user": """
        {"login":"octocat","id":583231,"node_id":"MDQ6VXNlcjE=","type":"User","site_admin":false,"name":"monalisa octocat",
        "email":"public@example.com"}
        """,
        "https://api.github.com/user/emails": """
        [{"email":"old@example.com","verified":true,"primary":false,"visibility":null},
        {"email":"octocat@example.com","verified":true,"primary":true,"visibility":"public"}]
        """,
      ], identity: "https://github.com 583231", attested: ["octocat@example.com"], names: ["monalisa octocat"],
      data: ["login": "octocat"]),
    // discord.com/developers/docs/resources/user
    Documented(
      preset: "discord", authorize: "https://discord.com/oauth2/authorize",
      token: "https://discord.com/api/oauth2/token", scopes: "identify email",
      answers: [
        "https://discord.com/api/users/@me": """
        {"id":"80351110224678912","username":"nelly","global_name":"Nelly","discriminator":"0","verified":true,
        "email":"nelly@example.com","flags":64,"premium_type":1}
        """
      ], identity: "https://discord.com 80351110224678912", attested: ["nelly@example.com"], names: ["Nelly"],
      data: ["username": "nelly"]),
    // developers.facebook.com/docs/graph-api/reference/user: says nothing about the address.
    Documented(
      preset: "facebook", authorize: "https://www.facebook.com/v23.0/dialog/oauth",
      token: "https://graph.facebook.com/v23.0/oauth/access_token", scopes: "public_profile email",
      answers: [
        "https://graph.facebook.com/v23.0/me?fields=id,first_name,last_name,email": """
        {"id":"10223456789012345","first_name":"Asha","last_name":"Rao","email":"asha@example.com"}
        """
      ], identity: "https://graph.facebook.com 10223456789012345", claimed: ["asha@example.com"],
      names: ["Asha", "Rao"]),
    // docs.gitea.com/development/oauth2-provider
    Documented(
      preset: "gitea", settings: ["server": "https://git.example.com/"],
      authorize: "https://git.example.com/login/oauth/authorize",
      token: "https://git.example.com/login/oauth/access_token", scopes: "openid profile email groups",
      answers: [
        "https://git.example.com/login/oauth/userinfo": """
        {"sub":"7","name":"Asha Rao","preferred_username":"asha","email":"asha@example.com",
        "groups":["acme","acme:owners"]}
        """
      ], identity: "https://git.example.com 7", claimed: ["asha@example.com"], names: ["Asha Rao"],
      groups: ["acme", "acme:owners"], data: ["login": "asha"]),
    // developer.atlassian.com/cloud/bitbucket/rest/api-group-users
    Documented(
      preset: "bitbucket", authorize: "https://bitbucket.org/site/oauth2/authorize",
      token: "https://bitbucket.org/site/oauth2/access_token", scopes: "account email",
      answers: [
        "https://api.bitbucket.org/2.0/user": """
        {"type":"user","uuid":"{1f8c2a4e-9d0b-4a5c-8e7f-0123456789ab}","display_name":"Asha Rao","nickname":"asha"}
        """,
        "https://api.bitbucket.org/2.0/user/emails": """
        {"pagelen":10,"values":[{"type":"email","email":"asha@example.com","is_primary":true,"is_confirmed":true},
        {"type":"email","email":"old@example.com","is_primary":false,"is_confirmed":false}]}
        """,
      ], identity: "https://bitbucket.org {1f8c2a4e-9d0b-4a5c-8e7f-0123456789ab}", attested: ["asha@example.com"],
      names: ["Asha Rao"]),
  ]

  private static let forge: [String: SettingValue] = [
    "authorize": "https://forge.example.com/authorize", "token": "https://forge.example.com/token",
    "userinfo": .table(["1": "https://forge.example.com/user", "emails": "https://forge.example.com/emails"]),
  ]

  private static func settings(_ values: [String: SettingValue]) -> StepSettings {
    StepSettings(
      secrets: ["client_secret": { "s3cret" }], values: values.merging(["client_id": "client"]) { first, _ in first })
  }

  /// A step at a site that answers so.
  private static func begun(_ values: [String: SettingValue], _ answers: [String: (Int, String)]) async throws
    -> Attempted
  {
    let web = TestProvider()
    web.change { $0.others = answers }
    return try await Attempted.begun(web, plugin: OpenID(.oauth), settings: settings(values))
  }

  private static func redeemed(_ step: Attempted) async throws -> StepAnswer {
    try await step.submit(["code": "c0de", "state": Attempted.callback.state])
  }

  /// A step at the forge, which answers so at its three addresses.
  private static func forged(
    token: (Int, String) = (200, #"{"access_token":"t0ken","token_type":"bearer"}"#),
    user: (Int, String) = (200, #"{"id":7,"email":"asha@example.com","email_verified":true}"#),
    emails: (Int, String) = (200, "[]"), _ values: [String: SettingValue] = [:]
  ) async throws -> Attempted {
    try await begun(
      forge.merging(values) { $1 },
      [
        "https://forge.example.com/token": token, "https://forge.example.com/user": user,
        "https://forge.example.com/emails": emails,
      ])
  }

  @Test("the documented answers give the identity, address, names, groups and data", arguments: documented)
  func answers(site: Documented) async throws {
    var answers = site.answers.mapValues { (200, $0) }
    answers[site.token] = (200, #"{"access_token":"t0ken","token_type":"bearer","scope":"x"}"#)
    let step = try await Self.begun(site.settings.merging(["preset": .text(site.preset)]) { $1 }, answers)
    #expect(step.redirect.hasPrefix(site.authorize + "?"))
    #expect(step["scope"] == site.scopes && step["nonce"] == nil && step["code_challenge_method"] == "S256")
    let proof = try #require(try await Self.redeemed(step).proof, "\(step.reasons.take())")
    #expect(proof.proved.map(\.value) == [site.identity])
    #expect(proof.attested.map(\.value) == site.attested)
    #expect(proof.claimed.map(\.value) == site.claimed)
    #expect([proof.firstName, proof.lastName].compactMap(\.self) == site.names)
    #expect(proof.proved.first?.groups == site.groups)
    #expect(proof.proved.first?.attributes == site.data)
    for request in step.web.requests where site.answers[request.url] != nil {
      #expect(request.headers.contains { $0.name == "Authorization" && $0.value == "Bearer t0ken" })
    }
  }

  @Test("each preset is a case") func complete() {
    let kind = OpenID(.oauth).descriptor.settings.first { $0.name == "preset" }?.kind
    #expect(kind == .choice(Self.documented.map(\.preset)))
  }

  @Test("answers are merged, and one with a name becomes a claim of that name") func merged() async throws {
    var step = try await Self.forged(emails: (200, #"["a@example.com"]"#))
    let seen = Seen()
    step.identity = IdentityMapper { claims in
      seen.set(claims)
      return nil
    }
    #expect(try await Self.redeemed(step).proof?.proved.first?.value == "https://forge.example.com 7")
    let claims = seen.claims
    #expect(claims["emails"] == .list([.text("a@example.com")]) && claims["id"] == .number(7))
  }

  /// Attack: the address for groups, which another team runs, answers with another user's id, or verifies the address
  /// that the first answer has.
  @Test("the subject and the address come from the first answer only, and of two members the first counts")
  func firstCounts() async throws {
    let values: [String: SettingValue] = [
      "userinfo": .table(["1": "https://forge.example.com/user", "2": "https://forge.example.com/emails"])
    ]
    let step = try await Self.forged(emails: (200, #"{"id":1,"sub":"1","groups":["ops"]}"#), values)
    let proof = try #require(try await Self.redeemed(step).proof)
    // `sub` is only at the second address, and would be sought first.
    #expect(proof.proved.first?.value == "https://forge.example.com 7")
    #expect(proof.proved.first?.groups == ["ops"])
    let none = try await Self.forged(user: (200, #"{"name":"Asha"}"#), emails: (200, #"{"sub":"1"}"#), values)
    #expect(try await Self.redeemed(none).reason == .oauthFailed)
    let verifying = try await Self.forged(
      user: (200, #"{"id":7,"email":"owner@example.com"}"#), emails: (200, #"{"email_verified":true}"#), values)
    let claimed = try #require(try await Self.redeemed(verifying).proof)
    #expect(claimed.claimed.map(\.value) == ["owner@example.com"] && claimed.attested.isEmpty)
    let naming = try await Self.forged(
      user: (200, #"{"id":7}"#), emails: (200, #"{"email":"owner@example.com","email_verified":true}"#), values)
    let bare = try #require(try await Self.redeemed(naming).proof)
    #expect(bare.claimed.isEmpty && bare.attested.isEmpty)
  }

  @Test(
    "the subject is a text or a whole number",
    arguments: [
      (#"{"sub":"abc"}"#, "abc"), (#"{"id":"x7"}"#, "x7"), (#"{"id":12345678901}"#, "12345678901"),
      (#"{"sub":"abc","id":7}"#, "abc"), (#"{"id":1.5}"#, nil), (#"{"id":true}"#, nil), (#"{"id":null}"#, nil),
      // Attack: two ids that are the same floating-point number.
      (#"{"id":9007199254740993}"#, "9007199254740993"), (#"{"id":9007199254740992}"#, "9007199254740992"),
      (#"{"id":18446744073709551617}"#, "18446744073709551617"), (#"{"id":-9007199254740993}"#, "-9007199254740993"),
      (#"{"id":9.007199254740993e15}"#, nil),
      ("{}", nil), (#"{"sub":""}"#, nil), (#"{"sub":"a\nb"}"#, nil), (#"{"id":["7"]}"#, nil),
    ] as [(String, String?)])
  func subject(user: String, subject: String?) async throws {
    let step = try await Self.forged(user: (200, user))
    let answer = try await Self.redeemed(step)
    #expect(answer.proof?.proved.first?.value == subject.map { "https://forge.example.com \($0)" })
    if subject == nil { #expect(step.reasons.take().last == "sub") }
  }

  @Test(
    "only a primary, verified address is verified",
    arguments: [
      ("[]", [], []), (#"{"message":"Not Found"}"#, [], []),
      (#"[{"email":"a@example.com","primary":true,"verified":false}]"#, [], ["a@example.com"]),
      (#"[{"email":"a@example.com","primary":false,"verified":true}]"#, [], []),
      (#"[{"email":"a@example.com","primary":"true","verified":"true"}]"#, [], []),
      (#"[{"email":"a@example.com","primary":true,"verified":"true"}]"#, [], ["a@example.com"]),
    ] as [(String, [String], [String])])
  func gitHubAddresses(emails: String, attested: [String], claimed: [String]) async throws {
    let step = try await Self.begun(
      ["preset": "github"],
      [
        "https://github.com/login/oauth/access_token": (200, #"{"access_token":"t0ken"}"#),
        "https://api.github.com/user": (200, #"{"id":7,"email":"public@example.com"}"#),
        "https://api.github.com/user/emails": (200, emails),
      ])
    let proof = try #require(try await Self.redeemed(step).proof)
    #expect(proof.attested.map(\.value) == attested && proof.claimed.map(\.value) == claimed)
  }

  /// Attack: invented codes at a site with errors of its own. As faults they would not count as attempts.
  @Test(
    "a code that is not accepted is refused",
    arguments: [
      (200, #"{"error":"bad_verification_code","error_description":"expired"}"#), (400, #"{"error":"invalid_grant"}"#),
      (400, #"{"error":{"message":"This authorization code has been used.","code":100}}"#), (400, "nonsense"),
    ])
  func wrongCode(status: Int, body: String) async throws {
    let step = try await Self.forged(token: (status, body))
    #expect(try await Self.redeemed(step).reason == .oauthFailed)
    #expect(step.reasons.take().last?.hasPrefix("code ") == true)
  }

  /// Attack: invented codes at Gitea, which says of them that the client is not authorized.
  @Test("an error that blames the client means a wrong code where the preset says so") func giteasCodes() async throws {
    let server = "https://git.example.com"
    let body = #"{"error":"unauthorized_client","error_description":"client is not authorized"}"#
    let step = try await Self.begun(
      ["preset": "gitea", "server": .text(server)], ["\(server)/login/oauth/access_token": (400, body)])
    #expect(try await Self.redeemed(step).reason == .oauthFailed)
    let other = try await Self.forged(token: (400, body))
    await #expect(throws: (any Error).self) { try await Self.redeemed(other) }
  }

  @Test(
    "a client that is not accepted, and a site that fails, are faults",
    arguments: [
      (200, #"{"error":"incorrect_client_credentials"}"#), (401, #"{"error":"invalid_client"}"#), (500, ""), (302, ""),
      (200, "{}"), (200, "[]"), (400, #"{"error":"redirect_uri_mismatch"}"#),
    ])
  func wrongClient(status: Int, body: String) async throws {
    let step = try await Self.forged(token: (status, body))
    await #expect(throws: (any Error).self) { try await Self.redeemed(step) }
  }

  /// Attacks: an answer without end, a list in place of a user, a member twice, and a site that is down. Nobody signs
  /// in.
  @Test(
    "a malformed answer about the user signs nobody in",
    arguments: [
      (200, "[]"), (200, "7"), (200, ""), (401, #"{"id":7}"#), (404, ""),
      (200, #"{"id":7,"x":""# + String(repeating: "x", count: 70_000) + #""}"#),
    ])
  func malformed(status: Int, body: String) async throws {
    let step = try await Self.forged(user: (status, body))
    await #expect(throws: (any Error).self) { try await Self.redeemed(step) }
    let second = try await Self.forged(emails: (500, ""))
    await #expect(throws: (any Error).self) { try await Self.redeemed(second) }
    let twice = try await Self.forged(user: (200, #"{"id":7,"id":8}"#))
    #expect(try await Self.redeemed(twice).reason == .oauthFailed)
  }

  /// Attack: an access token of another client, brought as if it were an ID token.
  @Test("no app can bring a token") func noApps() async throws {
    let step = try await Self.forged()
    #expect(!OpenID(.oauth).descriptor.submitFields.contains { $0.name == "id_token" })
    #expect(try await step.submit(["id_token": "t0ken", "code": "", "state": "st_abc"]).reason == .oauthFailed)
  }

  /// Attack (mix-up): the answer of one site at the callback of another.
  @Test("an answer in another issuer's name is refused") func mixUp() async throws {
    let step = try await Self.forged()
    let answer = try await step.submit(["code": "c0de", "state": "st_abc", "iss": "https://evil.example.com"])
    #expect(answer.reason == .oauthFailed)
    #expect(!step.web.requests.contains { $0.url.hasSuffix("/token") })
  }

  @Test(
    "the issuer in an answer is the origin, or the one of the settings, which is then required",
    arguments: [
      (nil, "https://forge.example.com", true), (nil, nil, true), (nil, "https://forge.example.com/acme", false),
      ("https://forge.example.com/acme", "https://forge.example.com/acme", true),
      ("https://forge.example.com/acme", "https://forge.example.com", false),
      ("https://forge.example.com/acme", "https://forge.example.com/other", false),
      ("https://forge.example.com/acme", nil, false),
    ] as [(String?, String?, Bool)])
  func issuerInAnswers(setting: String?, answer: String?, isAccepted: Bool) async throws {
    let step = try await Self.forged(setting.map { ["issuer": .text($0)] } ?? [:])
    var fields = ["code": "c0de", "state": Attempted.callback.state]
    fields["iss"] = answer
    let proof = try await step.submit(fields).proof
    #expect(proof?.proved.first?.value == (isAccepted ? "https://forge.example.com 7" : nil))
  }
}

/// What the function `identity` received.
final class Seen: Sendable {
  private let stored = Mutex<[String: JSONClaim]>([:])

  func set(_ claims: [String: JSONClaim]) { stored.withLock { $0 = claims } }

  var claims: [String: JSONClaim] { stored.withLock { $0 } }
}
