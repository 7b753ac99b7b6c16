import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// `recheck` and `recheck_grace` in the entry of a provider that can recheck.
@Suite struct RecheckSettingsTests {
  private static let policy = PolicySource(
    file: "Plugins/Site/policy.lua", text: "return policy \"site\" { limits = {} }")
  private static let site = ProviderDescriptor(
    name: "site", beginFields: [], submitFields: [], settings: [], policy: policy, identifierKinds: [.federated],
    rechecks: true)
  private static let other = ProviderDescriptor(
    name: "site", beginFields: [], submitFields: [], settings: [], policy: policy, identifierKinds: [.federated])

  private func load(_ entry: String, _ descriptor: ProviderDescriptor = site) throws -> Result<
    any PolicyGeneration, RefusedConfiguration
  > {
    let folder = try TestFolder([
      "gateway.lua":
        "return gateway {\n  public_url = \"http://localhost:8080\",\n  providers = {\n    phone_otp = { sms = outbox() },\n    site = { \(entry) },\n  },\n}",
      "policies/site.lua": "return policy \"site\" { limits = {} }", "policies/email_code.lua": nil,
    ])
    return folder.load(TestFolder.providers + [descriptor])
  }

  private func settings(_ entry: String) throws -> RecheckSettings? {
    try load(entry).get().gateway.providers["site"]?.recheck
  }

  @Test func intervalAndGraceAreRead() throws {
    #expect(try settings("") == nil)
    #expect(try settings("recheck = \"1h\"") == RecheckSettings(interval: .seconds(3_600), grace: .seconds(86_400)))
    #expect(
      try settings("recheck = \"1s\", recheck_grace = \"10m\"")
        == RecheckSettings(interval: .seconds(1), grace: .seconds(600)))
    // The default of the grace is never shorter than the interval.
    #expect(try settings("recheck = \"7d\"")?.grace == .seconds(7 * 86_400))
  }

  @Test func providersReadWhetherTheyAreRechecked() throws {
    let set = try load("recheck = \"1h\"").get().gateway.providers["site"]?.forSteps
    #expect(set?.isSet("recheck") == true)
    #expect(try load("").get().gateway.providers["site"]?.forSteps.isSet("recheck") == false)
  }

  @Test(arguments: [
    ("recheck = \"500ms\"", "recheck"), ("recheck = 60", "a bare number is not a duration"),
    ("recheck_grace = \"1h\"", "has no effect without `recheck`"),
    ("recheck = \"1h\", recheck_grace = \"10m\"", "must not be shorter than `recheck`"),
  ])
  func mistakesAreProblems(entry: String, sentence: String) throws {
    guard case .failure(let refused) = try load(entry) else {
      Issue.record("\(entry) is accepted")
      return
    }
    #expect(refused.problems.contains { "\($0)".contains("gateway.lua:5") && "\($0)".contains(sentence) })
  }

  @Test func otherProvidersHaveNoSuchSetting() throws {
    guard case .failure(let refused) = try load("recheck = \"1h\"", Self.other) else {
      Issue.record("it is accepted")
      return
    }
    #expect(refused.problems.contains { "\($0)".contains("unknown field") })
  }
}
