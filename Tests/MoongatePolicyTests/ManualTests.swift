import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// The pages of Documentation/: the configuration files that the guides show load, and every field has an example.
@Suite struct ManualTests {
  struct Example: Sendable, CustomTestStringConvertible {
    let page: String
    let heading: String
    let file: String
    let text: String
    var testDescription: String { "\(page), \(heading): \(file)" }
  }

  /// The text of each page by its path in Documentation/, such as "guides/flows.md".
  static let pages: [String: String] = {
    let root = TestFolder.root + "/Documentation/"
    var pages: [String: String] = [:]
    for case let name as String in FileManager.default.enumerator(atPath: root) ?? .init() where name.hasSuffix(".md") {
      pages[name] = try? String(contentsOfFile: root + name, encoding: .utf8)
    }
    return pages
  }()

  private static let manual = pages.values.joined(separator: "\n")

  /// Pages whose files build on each other; a test of their own loads them in their order.
  private static let cumulativePages: Set = [
    "guides/who-may-go-where.md",  // test_groups.py
    "guides/programs-without-a-person.md",  // test_tokens.py
    "guides/several-domains.md",  // SeveralDomainsGuideTests
  ]

  /// The pages that show configuration files, by their names.
  private static let guides = pages.keys.sorted().filter { page in
    ["guides/", "concepts/", "integrations/"].contains { page.hasPrefix($0) }
  }

  /// Every block of Lua that is loaded here. Its first line names its file.
  static let examples = guides.filter { !cumulativePages.contains($0) }
    .flatMap { page in examples(in: pages[page] ?? "", page: page) }

  static func examples(in text: String, page: String) -> [Example] {
    var examples: [Example] = []
    var heading = ""
    var block: [String]?
    for line in text.components(separatedBy: "\n") {
      if let lines = block {
        if line == "```" {
          examples.append(
            Example(
              page: page, heading: heading, file: String(lines.first?.dropFirst(3) ?? ""),
              text: lines.joined(separator: "\n")))
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

  /// A folder with the example and the other files that stand under its heading.
  private static func folder(_ example: Example) throws -> TestFolder {
    var files = [
      "tls/cert.pem": "x", "tls/key.pem": "x", credential: String(repeating: "k", count: 64),
      "tls/wiki-ca.pem": TestCertificates.authority, "tls/moongate.pem": TestCertificates.client,
      serviceKey: TestCertificates.clientKey,
    ]
    for other in examples where other.page == example.page && other.heading == example.heading {
      files[other.file] = other.text
    }
    files[example.file] = example.text
    if example.file == "guarantees.lua" {
      // The guarantees name providers of the shipped gateway.lua.
      files["gateway.lua"] = GuaranteeFolder.gateway
      files["google.secret"] = "a secret of Google's"
    }
    if files["accounts.lua"] != nil, files["gateway.lua"] == nil {
      files["gateway.lua"] = TestFolder.gateway.replacing("email_code = {", with: "pin = {}, totp = {}, email_code = {")
    }
    if example.text.contains("\(messenger)") {
      files["gateway.lua"] = TestFolder.gateway.replacing("email_code = {", with: "\(messenger) = {}, email_code = {")
    }
    // Templates stand in blocks of another language.
    if example.text.contains("error_pages") { files["pages/errors/error.mustache"] = "<h1>{{title}}</h1>" }
    // The secrets of apps, as `moongate app secret` writes them.
    let secrets = files.values.joined().matches(of: /file "(secrets\/[a-z_]+)"/).map { String($0.1) }
    for secret in secrets { files[secret] = String(repeating: "s", count: 43) }
    let folder = try TestFolder(files, programs: ["sms_hub.py"])
    let databases = files.values.joined().matches(of: /"([A-Za-z0-9-]+\.mmdb)"/).map { String($0.1) }
    let place = ClientPlace(country: "IN", asn: 64_500)
    for database in databases {
      try GeoFile(["203.0.113.0/24": place], builtAt: ManualClock.start).write(to: folder.scratch.path(database))
    }
    let isPrivate: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
    for file in [credential, serviceKey] + secrets {
      try FileManager.default.setAttributes(isPrivate, ofItemAtPath: folder.scratch.path(file))
    }
    return folder
  }

  /// The credential that systemd would hand over, in the folder.
  private static let credential = "credentials/master.key"

  /// The key that the gateway shows a service.
  private static let serviceKey = "tls/moongate.key"

  /// A provider that no program has and the guide to fallback names.
  private static let messenger = ProviderName(test: "whatsapp_code")

  private static func recipe(_ heading: String) throws -> any PolicyGeneration {
    let found = examples.first { $0.page == "guides/recipes.md" && $0.heading == heading }
    switch try folder(#require(found, "no recipe \(heading)")).load(
      ShippedProviders.all.map(\.descriptor))
    {
    case .success(let generation): return generation
    case .failure(let refused): throw TestFolder.Refused(problems: refused.problems.map(\.description))
    }
  }

  @Test func thereAreExamples() { #expect(Self.examples.count >= 40) }

  @Test(arguments: examples) func loads(_ example: Example) throws {
    #expect(
      ConfigurationFiles.rootFiles.contains(example.file)
        || example.file.wholeMatch(of: /(policies|flows|tests|shared)\/[a-z_]+\.lua/) != nil,
      "the first line of the block names its file")
    let folder = try Self.folder(example)
    var environment = [
      "MOONGATE_STORE": "postgres://moongate@127.0.0.1/moongate",
      "CREDENTIALS_DIRECTORY": folder.scratch.path("credentials"),
    ]
    // Every other variable that an example names is a secret.
    let texts = Self.examples.filter { $0.page == example.page && $0.heading == example.heading }.map(\.text)
    for found in texts.joined().matches(of: /env "([A-Z_]+)"/) where environment[String(found.1)] == nil {
      environment[String(found.1)] = "\(found.1)" + String(repeating: "k", count: 32)
    }
    var providers = (ShippedProviders.all + ShippedProviders.kinds).map(\.descriptor)
    if example.text.contains("\(Self.messenger)") {
      providers.append(
        FallbackReadingTests.messenger(Self.messenger, more: "\n  unknown_account = \"reveal\","))
    }
    switch folder.load(providers, environment: environment, programs: try StubPrograms.loading()) {
    case .success: break
    case .failure(let refused): Issue.record("\(refused.problems.map(\.description).joined(separator: "\n"))")
    }
  }

  /// Every field is listed in Documentation/ with its default, and a guide shows it in an example.
  @Test(arguments: TableShape.all.map(\.name)) func listsEveryField(_ name: String) throws {
    let shape = try #require(TableShape.all.first { $0.name == name })
    let shown = Self.guides.flatMap { page in
      (Self.pages[page] ?? "").matches(of: /(?ms)^ *```lua\n(.*?)^ *```$/).map { String($0.1) }
    }.joined(separator: "\n")
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

  /// The messages that the troubleshooting guide quotes are those of the program.
  @Test func quotedErrorsExistInTheSources() throws {
    let section = try #require(
      Self.pages["guides/troubleshooting.md"]?.components(separatedBy: "\n## Messages of check and of a reload\n").last?
        .components(separatedBy: "\n## ").first)
    let quoted = section.matches(of: /(?m)^\| `([^`]+)` \|/).map { String($0.1) }
    #expect(quoted.count >= 15)
    var sources = ""
    for folder in ["Sources/MoongatePolicy", "Sources/CLua", "Sources/moongate", "Plugins"] {
      let root = TestFolder.root + "/" + folder
      for case let name as String in FileManager.default.enumerator(atPath: root) ?? .init()
      where name.hasSuffix(".swift") || name.hasSuffix(".c") {
        sources += (try? String(contentsOfFile: root + "/" + name, encoding: .utf8)) ?? ""
      }
    }
    for sentence in quoted { #expect(sources.contains(sentence), "nothing says `\(sentence)`") }
  }

  /// The guide to troubleshooting explains every code with the status 403.
  @Test func everyForbiddingCodeIsInTheTable() throws {
    let table = try #require(
      Self.pages["guides/troubleshooting.md"]?.components(separatedBy: "\n## 403 answers\n").last)
    let codes = table.matches(of: /(?m)^\| `([a-z_]+)` \|/).map { String($0.1) }
    #expect(codes.sorted() == RefusalCode.all.filter { $0.status == 403 }.map(\.name).sorted())
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
    let evaluator = try Self.recipe("Read-only during maintenance").makeEvaluator()
    #expect(evaluator.verdict(of: FunctionName("routes[2].decide"), given: facts) == verdict)
  }
}
