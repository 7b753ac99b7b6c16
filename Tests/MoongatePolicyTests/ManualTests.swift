import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// config/README.md: its examples load and run, and its lists are complete.
@Suite struct ManualTests {
  struct Example: Sendable, CustomTestStringConvertible {
    let heading: String
    let file: String
    let text: String
    var testDescription: String { "\(heading): \(file)" }
  }

  static let manual = (try? String(contentsOfFile: TestFolder.root + "/config/README.md", encoding: .utf8)) ?? ""

  /// Every Lua block with its heading. Its first line names its file.
  static let examples = examples(in: manual)

  static func examples(in manual: String) -> [Example] {
    var examples: [Example] = []
    var heading = ""
    var block: [String]?
    for line in manual.components(separatedBy: "\n") {
      if let lines = block {
        if line == "```" {
          examples.append(
            Example(
              heading: heading, file: String(lines.first?.dropFirst(3) ?? ""), text: lines.joined(separator: "\n")))
          block = nil
        } else {
          block = lines + [line]
        }
      } else if line.hasPrefix("#") {
        heading = String(line.drop { $0 == "#" || $0 == " " })
      } else if line == "```lua" {
        block = []
      }
    }
    return examples
  }

  private static func folder(_ example: Example) throws -> TestFolder {
    // The guarantees name providers of the shipped gateway.lua.
    if example.file == "guarantees.lua" { return try GuaranteeFolder([example.file: example.text]).folder }
    var files = [example.file: example.text, "tls/cert.pem": "x", "tls/key.pem": "x"]
    if example.file == "accounts.lua" {
      files["gateway.lua"] = TestFolder.gateway.replacing("email_code = {", with: "pin = {}, totp = {}, email_code = {")
    }
    if example.heading == "fallback" {
      files["gateway.lua"] = TestFolder.gateway.replacing("email_code = {", with: "whatsapp_code = {}, email_code = {")
    }
    return try TestFolder(files, programs: ["sms_hub.py"])
  }

  private static func recipe(_ heading: String) throws -> any PolicyGeneration {
    switch try folder(#require(examples.first { $0.heading == heading }, "no recipe \(heading)")).load(
      ShippedProviders.all.map(\.descriptor))
    {
    case .success(let generation): return generation
    case .failure(let refused): throw TestFolder.Refused(problems: refused.problems.map(\.description))
    }
  }

  @Test func thereAreExamples() { #expect(Self.examples.count >= 10) }

  @Test(arguments: examples) func loads(_ example: Example) throws {
    #expect(
      ConfigurationFiles.rootFiles.contains(example.file)
        || example.file.wholeMatch(of: /(policies|flows|tests)\/[a-z_]+\.lua/) != nil)
    let environment = [
      "MOONGATE_KEY": String(repeating: "k", count: 32), "MOONGATE_STORE": "postgres://moongate@127.0.0.1/moongate",
      "MOONGATE_ADMIN_TOKEN": String(repeating: "t", count: 32), "GRAFANA_TOKEN": String(repeating: "g", count: 32),
      "AUDIT_SECRET": String(repeating: "a", count: 32),
    ]
    var providers = ShippedProviders.all.map(\.descriptor)
    if example.heading == "fallback" {
      providers.append(
        FallbackReadingTests.messenger(ProviderName(test: "whatsapp_code"), more: "\n  unknown_account = \"reveal\","))
    }
    switch try Self.folder(example).load(providers, environment: environment, programs: try StubPrograms.loading()) {
    case .success: break
    case .failure(let refused): Issue.record("\(refused.problems.map(\.description).joined(separator: "\n"))")
    }
  }

  /// Users cannot find a field that the manual does not list and show.
  @Test(arguments: TableShape.all.map(\.name)) func listsEveryField(_ name: String) throws {
    let shape = try #require(TableShape.all.first { $0.name == name })
    let shown = Self.examples.map(\.text).joined(separator: "\n")
    for entry in shape.entries {
      #expect(
        Self.manual.contains("`\(entry.name)`") || Self.manual.contains("\(entry.name) = "),
        "\(name).\(entry.name) is not listed")
      #expect(shown.firstMatch(of: try Regex("\\b\(entry.name)\\s*=")) != nil, "\(name).\(entry.name) has no example")
      if let standard = entry.standardText {
        #expect(Self.manual.contains(standard), "\(name).\(entry.name)'s default \(standard) is not told")
      }
    }
  }

  /// The error table quotes the actual messages.
  @Test func errorsAreSaidSo() throws {
    let section = try #require(
      Self.manual.components(separatedBy: "## What the errors mean").last?.components(separatedBy: "\n## ").first)
    let quoted = section.matches(of: /(?m)^\| `([^`]+)` \|/).map { String($0.1) }
    #expect(quoted.count >= 15)
    var sources = ""
    for folder in ["Sources/MoongatePolicy", "Sources/CLua", "Sources/moongate"] {
      let root = TestFolder.root + "/" + folder
      for case let name as String in FileManager.default.enumerator(atPath: root) ?? .init()
      where name.hasSuffix(".swift") || name.hasSuffix(".c") {
        sources += (try? String(contentsOfFile: root + "/" + name, encoding: .utf8)) ?? ""
      }
    }
    for sentence in quoted { #expect(sources.contains(sentence), "nothing says `\(sentence)`") }
  }

  // MARK: recipes

  private static let send = FunctionName("policies/phone_otp.send")

  /// Half past two at night in Kolkata, and noon.
  @Test(arguments: [(Int64(-54_000), 2, 1), (0, 5, 4)]) func stricterAtNight(
    _ offset: Int64, _ tries: Int, _ messages: Int
  ) throws {
    let generation = try Self.recipe("Stricter at night")
    let policy = try #require(generation.policies[ProviderName(test: "phone_otp")])
    let evaluator = try generation.makeEvaluator()
    // The test clock begins at 17:30 there.
    let facts = Facts(now: ManualClock.start + .seconds(offset), client: ClientFacts(address: .unspecified))
    for (name, value) in [("verify", tries), ("send", messages)] {
      let limit = try #require(policy.limits.first { $0.name == name })
      #expect(try evaluator.value(of: limit.max, given: facts) == value)
    }
  }

  @Test(arguments: [("IN", Verdict.allow), ("NL", .deny("country_not_served"))]) func onlyOneCountry(
    _ country: String, _ verdict: Verdict
  ) throws {
    let facts = Facts.test {
      $0.identifier = Identifier(kind: .phone, value: "+31612345678", display: "", attributes: ["country": country])
    }
    #expect(try Self.recipe("Only one country").makeEvaluator().verdict(of: Self.send, given: facts) == verdict)
  }

  @Test(arguments: [
    ("asha@example.com", false, Verdict.allow), ("asha@example.org", false, .deny("wrong_domain")),
    ("asha@example.com.example.org", false, .deny("wrong_domain")),
    ("asha@example.org", true, .allow),
  ])
  func onlyOneEmailDomain(_ address: String, _ exists: Bool, _ password: Verdict) throws {
    let facts = Facts.test {
      $0.identifier = Identifier(
        kind: .email, value: address, display: "", attributes: ["domain": String(address.split(separator: "@")[1])])
      $0.account = AccountFacts(exists: exists, id: exists ? "ac_1" : nil)
    }
    for example in Self.examples where example.heading == "Only one email domain" {
      guard case .success(let generation) = try Self.folder(example).load(ShippedProviders.all.map(\.descriptor)) else {
        Issue.record("\(example) is refused")
        continue
      }
      let isPassword = example.file == "policies/password.lua"
      let sent: Verdict = address.hasSuffix("@example.com") ? .allow : .deny("wrong_domain")
      let function = FunctionName(isPassword ? "policies/password.verify" : "policies/email_code.send")
      #expect(
        try generation.makeEvaluator().verdict(of: function, given: facts) == (isPassword ? password : sent),
        "\(example)")
    }
  }

  @Test(arguments: [(true, true, true), (true, false, false), (false, true, false)])
  func aSecondFactorForNewDevices(_ isNew: Bool, _ isVerified: Bool, _ applies: Bool) throws {
    let facts = Facts.test {
      $0.client.isNewDevice = isNew
      $0.account = AccountFacts(exists: true, id: "ac_1", isEmailVerified: isVerified)
    }
    let evaluator = try Self.recipe("A second factor for new devices").makeEvaluator()
    #expect(try evaluator.condition(of: FunctionName("accounts.sign_in[1].when"), given: facts) == applies)
  }

  @Test(arguments: [("+919999999999", 20), ("+917777777777", 4)]) func numbersThatMatterMore(
    _ number: String, _ messages: Int
  ) throws {
    let generation = try Self.recipe("Numbers that matter more")
    let limit = try #require(generation.policies[ProviderName(test: "phone_otp")]?.limits.first { $0.name == "send" })
    let facts = Facts.test {
      $0.identifier = Identifier(kind: .phone, value: number, display: "", attributes: ["country": "IN"])
    }
    #expect(try generation.makeEvaluator().value(of: limit.max, given: facts) == messages)
  }

  @Test(arguments: [("GET", Verdict.allow), ("HEAD", .allow), ("POST", .deny("maintenance"))])
  func readOnly(_ method: String, _ verdict: Verdict) throws {
    let facts = Facts.test { $0.request = RequestFacts(method: method, host: "localhost", path: "/", query: "") }
    let evaluator = try Self.recipe("Read-only while you work on it").makeEvaluator()
    #expect(evaluator.verdict(of: FunctionName("routes[2].decide"), given: facts) == verdict)
  }
}
