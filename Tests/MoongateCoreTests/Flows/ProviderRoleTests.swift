import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// What a provider may store and prove follows from its declared role.
@Suite struct ProviderRoleTests {
  /// Proves what the test gives it.
  private struct Prover: FullProvider {
    var name: ProviderName = "prover"
    var role: ProviderRole?
    var kinds: [IdentifierKind] = [.federated]
    let proof: Proof

    var descriptor: ProviderDescriptor {
      ProviderDescriptor(
        name: name, beginFields: [], submitFields: [InputField(name: "x", kind: .text)], settings: [],
        policy: PolicySource(file: "prover.lua", text: ""), identifierKinds: kinds, role: role)
    }

    func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
      .ask(descriptor.submitFields, state: [])
    }
    func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer { .proved(proof) }
  }

  private static func answer(_ prover: Prover, beside others: [any FullProvider] = []) async throws -> Result<
    FlowView, Refusal
  > {
    let bench = try await EngineTestBench(others: [prover] + others) { generation in
      generation.flows["by_prover"] = .test("by_prover", account: .any, steps: [.test(prover.name)])
    }
    let id = try await bench.engine.create("by_prover", returnTo: nil, browser: nil, client: bench.client()).get().id
    _ = try await bench.engine.begin(id, provider: prover.name.rawValue, fields: [:], client: bench.client()).get()
    return await bench.engine.submit(id, fields: ["x": .text("y")], client: bench.client())
  }

  private static func identity(_ value: String) -> Identifier {
    Identifier(kind: .federated, value: value, display: value)
  }

  /// Attack: a provider that is declared to prove identities stores a record, and becomes a factor of every account
  /// that it passes.
  @Test func onlyAProviderThatKeepsAFactorKeepsARecord() async throws {
    let proof = Proof(proved: [Self.identity("https://a.example 1")], record: .replaceOnce([1]))
    #expect(try await Self.answer(Prover(role: .provesIdentifier, proof: proof)).refusal?.code == .busy)
    #expect(
      try await Self.answer(Prover(role: [.provesIdentifier, .keepsFactor], proof: proof)).get().status == .complete)
    #expect(
      try await Self.answer(Prover(proof: proof)).get().status == .complete,
      "a provider that declares no role may keep one")
  }

  /// Attack: one federated provider proves an identity with another's name as prefix, and opens the accounts of that
  /// one.
  @Test func anIdentityOfAnotherProviderIsAFault() async throws {
    let other = Prover(name: "work", proof: Proof())
    let stolen = Proof(proved: [Self.identity("work https://b.example 1")])
    #expect(try await Self.answer(Prover(proof: stolen), beside: [other]).refusal?.code == .busy)
    #expect(
      try await Self.answer(Prover(proof: Proof(proved: [Self.identity("prover 1")])), beside: [other]).get().status
        == .complete)
  }

  /// Attack: an attacker who registers somebody's address first stores a secret with it under an instance's name, and
  /// signs in by it when the owner has proved the address.
  @Test func losingAClaimRemovesItsSecret() async throws {
    let bench = try await EngineTestBench.full()
    let thief = try #require(try await bench.claim("911111", "mallorys").account)
    #expect(try await bench.store.account(thief.id)?.credentials == ["password"])
    _ = try await bench.google(sub: "1", email: "911111", by: bench.client()).get()
    let left = try #require(try await bench.store.account(thief.id))
    #expect(left.credentials.isEmpty && left.identifiers.isEmpty)
  }

  @Test func secretsOfIdentifiersAreOfProvidersWithBothRoles() throws {
    let registry = try ProviderRegistry([
      Prover(name: "both", proof: Proof()), Prover(name: "site", role: .provesIdentifier, proof: Proof()),
      Prover(name: "factor", kinds: [], proof: Proof()),
    ])
    #expect(registry.identifierSecrets == ["both"])
  }
}
