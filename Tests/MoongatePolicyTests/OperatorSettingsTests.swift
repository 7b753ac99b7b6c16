import Foundation
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// Named tokens of the admin listener with roles, and sinks of the audit trail.
@Suite struct OperatorSettingsTests {
  private func read(_ line: String) throws -> Result<any PolicyGeneration, RefusedConfiguration> {
    let folder = try TestFolder([
      "gateway.lua":
        "return gateway {\n\(line)\npublic_url = \"http://localhost:8080\", providers = { phone_otp = { sms = outbox() }, email_code = { mail = outbox() } } }"
    ])
    return folder.load(environment: ["ONE": "one-0123456789abcdef", "TWO": "two-0123456789abcdef", "SHORT": "short"])
  }

  private func problems(_ line: String) throws -> [String] {
    if case .failure(let refused) = try read(line) { refused.problems.map(\.description) } else { [] }
  }

  private func tokens(_ list: String, address: String = "0.0.0.0:9901") -> String {
    "admin = { address = \"\(address)\", tokens = { \(list) } },"
  }

  private static let one = "{ name = \"x\", role = \"read\", token = env \"ONE\" }"

  @Test func appAPIIsOffUnlessGatewayLuaSaysOtherwise() throws {
    #expect(try !read("").get().gateway.appAPI && !read("app_api = false,").get().gateway.appAPI)
    #expect(try read("app_api = true,").get().gateway.appAPI)
    #expect(try problems("app_api = 1,") == ["gateway.lua:2: app_api: must be true or false, not the number 1"])
  }

  @Test func tokensHaveNamesAndRoles() throws {
    let gateway = try read(
      tokens(
        "{ name = \"grafana\", role = \"read\", token = env \"ONE\" }, { name = \"ravi@example.com\", role = \"act\", token = env \"TWO\" }"
      )
    ).get().gateway
    #expect(
      gateway.adminTokens.map(\.name) == ["grafana", "ravi@example.com"]
        && gateway.adminTokens.map(\.role) == [.read, .act])
    #expect(gateway.adminToken == nil && gateway.allAdminTokens.count == 2)
    #expect(!"\(gateway)".contains("0123456789abcdef"))
  }

  @Test(arguments: [
    (
      "{ name = \"x\", role = \"reed\", token = env \"ONE\" }",
      "admin.tokens[1].role: \"reed\" is not known; did you mean `read`?"
    ),
    ("{ role = \"read\", token = env \"ONE\" }", "admin.tokens[1].name: is missing: a name, such as \"grafana\""),
    ("{ name = \"a b\", role = \"read\", token = env \"ONE\" }", "admin.tokens[1].name: \"a b\" is not a valid name: "),
    (
      "{ name = \"admin\", role = \"read\", token = env \"ONE\" }",
      "admin.tokens[1].name: there is another token \"admin\": "
    ),
    (
      "{ name = \"x\", role = \"read\", token = \"plain-0123456789abcdef\" }",
      "admin.tokens[1].token: must be a secret: use env"
    ),
    ("{ name = \"x\", role = \"read\", token = env \"SHORT\" }", "admin.tokens[1].token: is too short: "),
    ("\(one), { name = \"x\", role = \"read\", token = env \"TWO\" }", "admin.tokens[2].name: there is another"),
    ("\(one), { name = \"y\", role = \"act\", token = env \"ONE\" }", "admin.tokens[2].token: is the same as"),
    ("\"x\"", "admin.tokens[1]: must be a table"), ("x = 1", "admin.tokens: must be a list of tokens"),
  ]) func invalidTokenIsReportedWithItsLine(_ list: String, _ problem: String) throws {
    let told = try problems(tokens(list))
    #expect(told.contains { $0.hasPrefix("gateway.lua:2: \(problem)") }, "\(told)")
  }

  @Test func emptyListIsNotAToken() throws {
    #expect(try problems(tokens("")).contains { $0.contains("other hosts can reach 0.0.0.0:9901") })
  }

  @Test func sinksAreReadInTheirOrder() throws {
    let line = """
      audit = { file { path = "/tmp/audit.log", rotate = "1MiB", keep = 3 }, syslog {}, syslog { address = "tcp://[::1]", facility = "local3" }, \
      webhook { url = "https://siem.example.com/in", secret = env "ONE" } },
      """
    let sinks = try read(line).get().gateway.audit
    #expect(
      sinks == [
        .file(AuditFileSettings(path: "/tmp/audit.log", rotate: 1 << 20, keep: 3)),
        .syslog(SyslogSettings(address: .local(path: "/dev/log"), facility: .authpriv)),
        .syslog(SyslogSettings(address: .tcp(host: "::1", port: 514), facility: .local3)),
        .webhook(AuditWebhookSettings(url: "https://siem.example.com/in", secret: SecretText("one-0123456789abcdef"))),
      ])
    #expect(sinks.map(\.name)[2] == "syslog tcp://[::1]:514")
  }

  @Test(arguments: [
    ("file { path = \"/nowhere/audit.log\" }", "audit[1].path: /nowhere/audit.log: missing folder /nowhere. "),
    ("file { path = \"/tmp\" }", "audit[1].path: /tmp is a folder: use the path of a file"),
    ("file { paht = \"/tmp/x\" }", "audit[1].paht: unknown field; did you mean `path`?"),
    ("file { path = \"/tmp/x\", rotate = \"1B\" }", "audit[1].rotate: must be from 4096 to "),
    ("file \"/tmp/x\"", "audit[1]: must be a table"),
    ("outbox()", "audit[1]: must be a sink: file { … }, syslog { … } or webhook { … }"),
    ("syslog { address = \"udp://x\" }", "audit[1].address: \"udp://x\" is not a syslog server"),
    ("syslog { facility = \"mail\" }", "audit[1].facility: \"mail\" is not known"),
    ("webhook { url = \"https://siem.example.com\" }", "audit[1].secret: is missing: the signing key"),
    ("webhook { url = \"siem\", secret = env \"ONE\" }", "audit[1].url: \"siem\" is not a valid URL"),
    ("webhook { url = \"https://siem.example.com\", secret = env \"SHORT\" }", "audit[1].secret: is too short"),
    ("syslog {}, syslog {}", "audit[2]: is the same sink as another one: syslog /dev/log"),
  ]) func invalidSinkIsReportedWithItsLine(_ list: String, _ problem: String) throws {
    let told = try problems("audit = { \(list) },")
    #expect(told.contains { $0.hasPrefix("gateway.lua:2: \(problem)") }, "\(told)")
  }

  @Test func theWordFileStaysASecret() throws {
    #expect(try problems("key = file { path = \"x\" },").count == 1)
    #expect(
      try problems("audit = file { path = \"/tmp/x\" },").contains { $0.contains("audit: must be a list of sinks") })
  }
}
