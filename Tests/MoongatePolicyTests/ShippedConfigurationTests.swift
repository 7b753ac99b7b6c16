import Foundation
import MoongateCore
@testable import MoongatePolicy
import MoongateSDK
import MoongateTesting
import Testing

@Suite struct ShippedConfigurationTests {
  private func shipped() throws -> any PolicyGeneration {
    switch ConfigurationLoader(providers: ShippedProviders.all, environment: [:]).load(
      folder: TestFolder.root + "/config")
    {
    case .success(let generation): return generation
    case .failure(let refused): throw TestFolder.Refused(problems: refused.problems.map(\.description))
    }
  }

  @Test func loadsWithoutAProblemOrAWarning() throws {
    let generation = try shipped()
    #expect(generation.warnings.map(\.description) == [])
    #expect(generation.id.wholeMatch(of: /[0-9a-f]{64}/) != nil)
    #expect(Set(generation.flows.keys).isSuperset(of: ["login", "register", "enter"]))
    #expect(generation.gateway.listen.description == "127.0.0.1:8080")
    #expect(generation.gateway.admin.description == "127.0.0.1:9901")
    #expect(generation.gateway.publicURL.description == "http://localhost:8080")
    #expect(generation.gateway.store == .sqlite(path: TestFolder.root + "/config/data/moongate.db"))
    #expect(generation.gateway.key == .file(path: TestFolder.root + "/config/data/master.key"))
    #expect(generation.gateway.riskBudget == 0.001)
    #expect(generation.gateway.providers[ProviderName(test: "phone_otp")]?.deliveries == ["sms": .outbox])
  }

  @Test func phonePolicyHasTheExpectedValues() throws {
    let policy = try #require(try shipped().policies[ProviderName(test: "phone_otp")])
    #expect(policy.code == CodeRule(length: 6, alphabet: .digits, lifetime: .seconds(600)))
    #expect(policy.resendAfter == [.fixed(.seconds(60)), .fixed(.seconds(120))])
    #expect(policy.unknownAccount == .reveal)
    #expect(policy.message == "{code} is your {service} verification code")
    #expect(policy.send == nil && policy.verify == nil)
    #expect(
      policy.limits.map(\.name) == [
        "hard", "send", "send_day", "send_ip", "send_network", "send_prefix", "sms_global", "verify",
      ])
    let verify = try #require(policy.limits.last)
    #expect(
      verify.max == .fixed(5) && verify.window == .fixed(.seconds(86_400)) && verify.counts == .failures
        && verify.key == .phone)
    #expect(verify.lock == [.seconds(900), .seconds(3600), .seconds(21_600), .seconds(86_400)].map { .fixed($0) })
    let hard = try #require(policy.limits.first)
    #expect(!hard.disables && hard.window == nil && hard.counts == .consecutiveFailures && hard.max == .fixed(100))
    #expect(hard.lock == [.seconds(3600), .seconds(21_600), .seconds(86_400)].map { .fixed($0) })
  }

  /// Attack: an attacker fills a limit that disables another user's credential until an operator re-enables it.
  @Test func noShippedLimitTurnsACredentialOff() throws {
    let policies = Array(try shipped().policies.values) + Array(try TestFolder().generation().policies.values)
    for policy in policies {
      for limit in policy.limits { #expect(!limit.disables, "\(policy.provider) \(limit.name)") }
    }
  }

  @Test func shippedLimitsBoundTheCost() throws {
    let policies = try shipped().policies
    func limits(_ provider: StaticString, _ action: LimitAction) -> [String] {
      (policies[ProviderName(test: provider)]?.limits ?? []).filter { $0.action == action }.map { limit in
        "\(limit.max.highest) \(limit.key.rawValue) \(limit.window?.highest.asWritten ?? "")"
      }.sorted()
    }
    #expect(limits("password", .register) == ["10 ip 1h", "200 network 24h", "5000 global 1h"])
    #expect(limits("password", .begin) == ["60 ip 1h"] && limits("google_oauth", .begin) == ["60 ip 1h"])
    #expect(
      limits("phone_otp", .send) == [
        "10 phone 24h", "30 ip 1h", "300 network 1h", "300 prefix 1h", "4 phone 15m", "5000 global 1h",
      ])
    #expect(
      limits("email_code", .send) == ["10 email 24h", "20000 global 1h", "30 ip 1h", "300 network 1h", "4 email 15m"])
  }

  /// The operator's files repeat the defaults as a template, and must not differ from them.
  @Test func operatorFilesMatchTheDefaults() throws {
    let alone = try TestFolder().generation().policies[ProviderName(test: "phone_otp")]
    let shipped = try shipped().policies[ProviderName(test: "phone_otp")]
    func plain(_ limits: [Limit]?) -> [Limit]? {
      limits?.map {
        Limit(
          name: $0.name, action: $0.action, key: $0.key, max: $0.max, window: $0.window, counts: $0.counts,
          lock: $0.lock, disables: $0.disables,
          location: SourceLocation(file: "", line: 0))
      }
    }
    #expect(plain(alone?.limits) == plain(shipped?.limits))
    #expect(
      alone?.code == shipped?.code && alone?.resendAfter == shipped?.resendAfter && alone?.message == shipped?.message)
    #expect(alone?.locations["limits.verify.max"]?.file == "Plugins/PhoneOTP/policy.lua")
    #expect(shipped?.locations["limits.verify.max"]?.file == "policies/phone_otp.lua")
  }

  @Test func theIdFollowsNamesAndContents() throws {
    let first = try TestFolder().generation().id
    #expect(try TestFolder().generation().id == first)
    #expect(try TestFolder(["routes.lua": TestFolder.routes + "\n"]).generation().id != first)
    #expect(try TestFolder(["tests/a.lua": "return tests {}"]).generation().id != first)
    #expect(
      try TestFolder([".gateway.lua.swp": "rubbish", "policies/.#x.lua": "rubbish", "README.md": "x"]).generation().id
        == first)
  }
}
