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

  @Test func readsOneSpellingOfAnAddress() throws {
    let input = ProviderInput(fields: ["email": .text(" Asha@Example.COM ")], defaultRegion: "IN")
    #expect(try NewProvider().readIdentifier(input).value == "asha@example.com")
  }
}
