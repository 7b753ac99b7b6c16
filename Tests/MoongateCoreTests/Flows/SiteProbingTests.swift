import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// The sites that are tried when the gateway starts.
@Suite struct SiteProbingTests {
  private struct Site: FullProvider, SiteProbing {
    let name: ProviderName
    let fault: String?

    var descriptor: ProviderDescriptor {
      ProviderDescriptor(
        name: name, beginFields: [], submitFields: [], settings: [], policy: PolicySource(file: "site.lua", text: ""),
        identifierKinds: [.federated])
    }

    func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer { .ask([], state: []) }

    func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer { .proved(Proof()) }

    func probe(with tools: StepTools) async throws -> String? {
      if let fault { throw Silent(description: fault) }
      return "It answers."
    }
  }

  private struct Silent: Error, CustomStringConvertible {
    let description: String
  }

  @Test func siteThatDoesNotAnswerIsAWarning() async throws {
    let bench = try await EngineTestBench(others: [
      Site(name: "first_site", fault: "no answer"), Site(name: "second_site", fault: nil),
      Site(name: "third_site", fault: "no keys"),
    ])
    await bench.engine.probeSites()
    let warnings = bench.log.lines.filter { $0.contains("does not answer as it should") }
    #expect(warnings.count == 2 && warnings.allSatisfy { $0.hasPrefix("warning ") })
    #expect(warnings.first?.contains("fault=no answer provider=first_site") == true)
  }
}
