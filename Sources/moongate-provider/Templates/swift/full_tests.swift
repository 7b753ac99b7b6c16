import MoongateConformance
import MoongateSDK
import NewProvider
import Testing

@Suite struct NewProviderTests {
  /// Runs every rule for providers. To tell the suite more about your provider, change the subject before the run.
  @Test func holdsTheConformanceSuite() async {
    let provider = NewProvider()
    let report = await Conformance.run(provider, ConformanceSubject(of: provider.descriptor))
    for finding in report.findings { Issue.record("\(finding)") }
  }

  @Test func declaresItself() {
    #expect(NewProvider().descriptor.name.rawValue == "new_provider")
    #expect(NewProvider().descriptor.mistakes == [])
  }

  @Test(arguments: ["", "short", "elevenchars"]) func aShortPhraseIsMalformed(_ phrase: String) {
    let input = ProviderInput(fields: ["phrase": .text(phrase)], defaultRegion: "IN")
    let step = StepContext(
      flow: "login", purpose: .prove, account: nil, identifier: nil, state: [], now: 0, callback: nil,
      tools: StepTools(randomBytes: { [UInt8](repeating: 0, count: $0) }, web: NoSites()))
    #expect(throws: InputProblem.self) { try NewProvider().check(step, input) }
  }
}

/// Fails every request, because tests have no network.
private struct NoSites: WebClient {
  func send(_ request: WebRequest) async throws(WebFault) -> WebAnswer { throw WebFault(reason: "tests reach no site") }
}
