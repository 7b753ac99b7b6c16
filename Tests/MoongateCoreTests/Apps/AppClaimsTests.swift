import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateCore

/// What tokens say about a user.
@Suite struct AppClaimsTests {
  private typealias Bench = AppsTestBench
  private static let function = FunctionName("grafana.claims")

  private func claims(_ app: App, _ scopes: [String], _ bench: Bench) async throws -> [AppClaim] {
    try bench.apps.claims(of: try await bench.session(), scopes: scopes, app, bench.call)
  }

  @Test func scopesGiveTheirClaims() async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    try await bench.apply(.setGroupMembership(account: Bench.account, Bench.staff, true))
    #expect(try await claims(app, ["openid"], bench).map(\.name) == ["sub"])
    let profile = try await claims(app, ["profile"], bench)
    #expect(profile.map(\.name) == ["sub", "name", "given_name", "family_name", "updated_at"])
    #expect(profile[1] == AppClaim(rule: "scope \"profile\"", name: "name", value: .text("Asha Rao")))
    let more = try await claims(app, ["profile", "email", "groups"], bench)
    #expect(more.first { $0.name == "preferred_username" }?.value == .text("asha@example.com"))
    #expect(more.first { $0.name == "groups" }?.value == .list([.text("staff")]))
    #expect(String(decoding: try await claims(app, ["openid"], bench).json, as: UTF8.self) == #"{"sub":"ac_asha"}"#)
  }

  /// Attack: an account claims the number or address of somebody else without having verified it, and the app signs
  /// its user in by that.
  @Test func onlyVerifiedIdentifiersAreStated() async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let found = try await claims(app, ["openid", "profile", "email", "phone"], bench)
    #expect(found.first { $0.name == "email" }?.value == .text("asha@example.com"))
    #expect(found.first { $0.name == "email_verified" }?.value == .flag(true))
    #expect(!found.contains { $0.name.hasPrefix("phone") })
  }

  @Test func ownClaimsReplaceThoseOfTheProfile() async throws {
    let app = try Bench.app(claims: Self.function)
    let bench = try await Bench(app)
    bench.reload(app) {
      $0.appClaims[Self.function] = { facts in
        ["role": .text(facts.session?.email == nil ? "Viewer" : "Admin"), "name": .text("A. Rao")]
      }
    }
    let found = try await claims(app, ["openid", "profile"], bench)
    #expect(found.filter { $0.name == "name" }.map(\.value) == [.text("A. Rao")])
    #expect(found.last == AppClaim(rule: "grafana.claims", name: "role", value: .text("Admin")))
  }

  /// Attack: a function that copies what a user typed into a claim by which apps know users or trust tokens.
  @Test(arguments: ["sub", "iss", "aud", "email", "email_verified", "phone_number", "groups", "nonce", "sid"])
  func reservedNamesAreFaults(_ name: String) async throws {
    let app = try Bench.app(claims: Self.function)
    let bench = try await Bench(app)
    bench.reload(app) { $0.appClaims[Self.function] = { _ in [name: .text("x")] } }
    let session = try await bench.session()
    #expect(throws: PolicyFault.self) {
      try bench.apps.claims(of: session, scopes: ["openid"], app, bench.call)
    }
    // No tokens are made then.
    let code = try await bench.code(app, in: session)
    await #expect(throws: AppFault.self) { try await bench.redeem(code, app) }
  }

  /// No method of RFC 8176 says that another site has authenticated the user.
  @Test func methodsThatAreNotKnownAreLeftOut() async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let tokens = try await bench.tokens(app, in: try await bench.session(["google"]))
    let claims = try await bench.claims(tokens.idToken)
    #expect(claims["amr"] == nil && claims["acr"] == .text("urn:moongate:aal:1"))
  }

  /// Attack: two apps compare what they know about their users.
  @Test func pairwiseSubjectsDifferBetweenHosts() async throws {
    let app = try Bench.app(isPairwise: true)
    let same = try Bench.app("wiki", redirects: ["https://grafana.example.com/wiki"], isPairwise: true)
    let other = try Bench.app("other", redirects: ["https://other.example.com/in"], isPairwise: true)
    let bench = try await Bench(app, same, other)
    let subjects = [app, same, other].map { $0.subject(of: Bench.account, keys: bench.keys) }
    #expect(subjects[0] == subjects[1] && subjects[0] != subjects[2] && !subjects.contains(Bench.account))
    #expect(app.sessionName("se_1", keys: bench.keys) != same.sessionName("se_1", keys: bench.keys))
    #expect(try await claims(app, ["openid"], bench).map(\.value) == [.text(subjects[0])])
  }

  @Test func claimsAreJSON() {
    let members: [(String, JSONClaim)] = [
      ("text", .text("a\"b")), ("number", .number(1.5)), ("whole", .number(3)),
      ("big", .integer(digits: "9007199254740993")),
      ("list", .list([.null, .flag(true)])), ("object", .object(["b": .number(1), "a": .object([:])])),
    ]
    #expect(
      String(decoding: Apps.json(members), as: UTF8.self)
        == #"{"text":"a\"b","number":1.5,"whole":3,"big":9007199254740993,"list":[null,true],"object":{"a":{},"b":1}}"#)
  }
}
