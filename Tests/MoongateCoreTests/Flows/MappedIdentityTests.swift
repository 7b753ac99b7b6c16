import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// What follows from the function `identity` of a policy.
@Suite struct MappedIdentityTests {
  private static let function = FunctionName("policies/google_oauth.identity")

  /// A bench whose policy maps `said` to a group, denies `guest`, and fails for `broken`.
  private static func bench() async throws -> EngineTestBench {
    try await EngineTestBench.full { generation in
      generation.policies[EngineTestBench.google] = .test(
        EngineTestBench.google, limits: [], identity: function, reasons: ["not_staff": "Only staff can sign in."])
      generation.identities[function] = { claims in
        switch claims["said"]?.text {
        case "guest": return .deny("not_staff")
        case "other": return .deny("unworded")
        case "broken": return nil
        case let said: return .mapped(MappedIdentity(groups: [said ?? ""]))
        }
      }
    }
  }

  private static func groups(_ bench: EngineTestBench, _ account: String?) async throws -> [String]? {
    try await bench.store.account(try #require(account))?.identifiers.first { $0.identifier.kind == .federated }?
      .identifier.groups
  }

  @Test func itsGroupsAreStoredAndRenewed() async throws {
    let bench = try await Self.bench()
    let first = try await bench.google(sub: "asha", telling: ["said": "ops"], by: bench.client()).get()
    #expect(try await Self.groups(bench, first.account?.id) == ["ops"])
    _ = try await bench.google(sub: "asha", telling: ["said": "dev"], by: bench.client()).get()
    #expect(try await Self.groups(bench, first.account?.id) == ["dev"])
  }

  @Test func denialIsRefusedInThePolicysWords() async throws {
    let bench = try await Self.bench()
    let refusal = try await bench.google(sub: "asha", telling: ["said": "guest"], by: bench.client()).refusal
    #expect(refusal?.code == .policyReason("not_staff") && refusal?.code.status == 403)
    #expect(refusal?.detail == "Only staff can sign in.")
    let other = try await bench.google(sub: "asha", telling: ["said": "other"], by: bench.client()).refusal
    #expect(other?.code == .policyReason("unworded") && other?.detail == nil)
    let identity = Identifier(kind: .federated, value: "https://google.example asha", display: "asha")
    #expect(try await bench.store.account(holding: identity) == nil, "nothing is stored")
  }

  @Test func faultOfTheFunctionIsRefusedAndStoresNothing() async throws {
    let bench = try await Self.bench()
    let first = try await bench.google(sub: "asha", telling: ["said": "ops"], by: bench.client()).get()
    let refusal = try await bench.google(sub: "asha", telling: ["said": "broken"], by: bench.client()).refusal
    #expect(refusal?.code == .policyError)
    #expect(try await Self.groups(bench, first.account?.id) == ["ops"])
  }

  /// Attack: someone whom the policy denies tries again and again, and locks the site for others on the network.
  @Test func denialIsNoFailedAttempt() async throws {
    let bench = try await Self.bench()
    for _ in 0..<20 {
      let refusal = try await bench.google(sub: "asha", telling: ["said": "guest"], by: bench.client()).refusal
      #expect(refusal?.code == .policyReason("not_staff"))
    }
    #expect(try await bench.google(sub: "asha", telling: ["said": "ops"], by: bench.client()).get().status == .complete)
  }
}
