import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Signing out at the site that signed the user in.
@Suite struct SiteSignOutTests {
  /// Leads users who sign out to an address.
  private struct Leading: FullProvider, SignOutLeading {
    let name: ProviderName
    /// nil: the operator wants users to sign out here only.
    let address: String?
    var fails = false

    var descriptor: ProviderDescriptor {
      ProviderDescriptor(
        name: name, beginFields: [], submitFields: [], settings: [], policy: PolicySource(file: "site.lua", text: ""),
        identifierKinds: [.federated])
    }

    func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer { .ask([], state: []) }

    func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer { .proved(Proof()) }

    func signOutAddress(returningTo address: String, with tools: StepTools) async throws -> String? {
      if fails { throw Silent() }
      return self.address
    }
  }

  private struct Silent: Error {}

  /// The site to which a user is led who has passed these, in this order.
  private static func site(after passed: [Leading]) async throws -> ProviderName? {
    let bench = try await EngineTestBench(others: passed)
    let now = bench.clock.now()
    let session = Session(
      id: "se_1", token: SessionToken(from: SystemRandom()).hash, account: "ac_1", createdAt: now,
      expiresAt: now + .seconds(3600), idle: .seconds(3600), lastSeenAt: now,
      passed: [PassedStep(provider: EngineTestBench.phone, at: now)]
        + passed.map { PassedStep(provider: $0.name, at: now) }, userAgent: nil)
    return await bench.engine.siteSignOut(of: session, client: bench.client())?.provider
  }

  @Test func userIsLedToTheLastSiteThatHasAnAddress() async throws {
    let first = Leading(name: "first_site", address: "https://first.example/end")
    let second = Leading(name: "second_site", address: "https://second.example/end")
    let silent = Leading(name: "silent_site", address: nil)
    let failing = Leading(name: "failing_site", address: nil, fails: true)
    // Attack: an address that is not encrypted.
    let open = Leading(name: "open_site", address: "http://open.example/end")
    #expect(try await Self.site(after: [first, second]) == "second_site")
    #expect(try await Self.site(after: [first, silent]) == "first_site")
    #expect(try await Self.site(after: [first, failing, open]) == "first_site")
    #expect(try await Self.site(after: [silent]) == nil)
    #expect(try await Self.site(after: []) == nil)
  }
}
