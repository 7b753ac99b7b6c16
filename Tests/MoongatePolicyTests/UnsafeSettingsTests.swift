import Foundation
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// Settings that would open the gateway to attackers are refused, with their lines.
@Suite struct UnsafeSettingsTests {
  private static let token = "0123456789abcdef-the-operators-token"

  /// - Parameter lines: the text from line 2 on.
  private func read(_ lines: String, publicURL: String = "http://localhost:8080", delivery: String = "outbox()") throws
    -> Result<
      any PolicyGeneration, RefusedConfiguration
    >
  {
    let folder = try TestFolder([
      "gateway.lua":
        "return gateway {\n\(lines)\npublic_url = \"\(publicURL)\", providers = { phone_otp = { sms = \(delivery) }, email_code = { mail = \(delivery) } } }"
    ])
    return folder.load(environment: [
      "TOKEN": Self.token, "SHORT": "fifteen-bytes-x", "SPACED": "a token with spaces in it",
      "LINES": "0123456789abcdef\nx",
    ])
  }

  private func problems(_ result: Result<any PolicyGeneration, RefusedConfiguration>) -> [String] {
    if case .failure(let refused) = result { refused.problems.map(\.description) } else { [] }
  }

  // MARK: the admin listener

  /// Attack: anyone who can reach the admin listener reads every code and deletes every account.
  @Test(arguments: [
    "0.0.0.0:9901", "[::]:9901", "10.0.0.5:9901", "gateway.example.com:9901", "localhost.example.com:9901",
    "a.localhost:9901",
    "[::ffff:127.0.0.1]:9901",
  ])
  func anAdminListenerThatOtherMachinesReachNeedsAToken(_ address: String) throws {
    let told = problems(try read("admin = \"\(address)\","))
    #expect(
      told.count == 1 && told[0].hasPrefix("gateway.lua:2: admin: other hosts can reach \(address)")
        && told[0].contains("token = env"), "\(told)")
    #expect(problems(try read("admin = { address = \"\(address)\" },")).count == 1)
    let settings = try read("admin = { address = \"\(address)\", token = env \"TOKEN\" },").get().gateway
    #expect(settings.admin == ListenAddress(address) && settings.adminToken?.reveal() == Self.token)
  }

  @Test(arguments: ["127.0.0.1:9901", "127.8.9.1:0", "[::1]:9901", "localhost:9901", "LOCALHOST:9901"])
  func anAdminListenerOnLoopbackNeedsNone(_ address: String) throws {
    #expect(try read("admin = \"\(address)\",").get().gateway.adminToken == nil)
    #expect(try read("admin = { address = \"\(address)\" },").get().gateway.admin == ListenAddress(address))
  }

  @Test(
    arguments: [
      (
        "token = env \"SHORT\"",
        "2: admin.token: is too short: at least 16 characters, for example the output of `openssl rand -hex 32`"
      ),
      (
        "token = env \"SPACED\"",
        "2: admin.token: must be printable ASCII without spaces, for example the output of `openssl rand -hex 32`"
      ),
      (
        "token = env \"LINES\"",
        "2: admin.token: must be printable ASCII without spaces, for example the output of `openssl rand -hex 32`"
      ),
      (
        "token = env \"NONE\"",
        "2: admin.token: the environment variable is missing: NONE. Set it before the gateway starts"
      ),
      (
        "token = \"\(token)\"",
        "2: admin.token: must be a secret: use env \"NAME\", file \"path\" or credential \"name\" instead of the value itself"
      ),
      (
        "tokn = env \"TOKEN\"",
        "2: admin.tokn: unknown field; did you mean `token`? (the token that each call must send as Authorization: Bearer, as in env \"MOONGATE_ADMIN_TOKEN\")"
      ),
    ]) func aTokenIsASecretOfSomeLength(_ field: String, _ problem: String) throws
  {
    #expect(problems(try read("admin = { address = \"127.0.0.1:9901\", \(field) },")) == ["gateway.lua:" + problem])
  }

  @Test func theTokenNeverShows() throws {
    let generation = try read("admin = { address = \"0.0.0.0:9901\", token = env \"TOKEN\" },").get()
    #expect(
      !"\(generation.gateway)".contains(Self.token) && !String(reflecting: generation.gateway).contains(Self.token))
  }

  // MARK: the outbox

  @Test(arguments: [
    "https://auth.example.com", "http://192.0.2.1:8080", "http://localhost.example.com", "http://127.example.com",
  ])
  func anOutboxThatOthersDependOnIsRefused(_ url: String) throws {
    let told = problems(try read("", publicURL: url))
    #expect(
      told.count == 2
        && told.allSatisfy { $0.contains("outbox() sends nothing") && $0.contains("outbox { allow_public = true }") },
      "\(told)")
    #expect(
      told.contains {
        $0.hasPrefix("gateway.lua:3: providers.phone_otp.sms: ") && $0.contains("use webhook { … } or twilio { … }")
      })
    #expect(problems(try read("", publicURL: url, delivery: "outbox { allow_public = false }")).count == 2)
    let allowed = try read("", publicURL: url, delivery: "outbox { allow_public = true }").get()
    #expect(allowed.warnings.filter { $0.message.hasPrefix("outbox sends nothing") }.count == 2)
    #expect(allowed.gateway.providers.values.allSatisfy { $0.deliveries.values.contains(.outbox) })
  }

  @Test(arguments: ["http://localhost:8080", "http://wallet.localhost", "http://127.0.0.1:8080", "https://[::1]:8443"])
  func anOutboxOnThisMachineIsFine(_ url: String) throws {
    #expect(try read("", publicURL: url).get().warnings.allSatisfy { !$0.message.contains("outbox") })
  }

  // MARK: secrets in files

  /// Attack: another user of the machine reads the secret.
  @Test(arguments: [0o604, 0o640, 0o644, 0o660, 0o444, 0o602, 0o620, 0o666])
  func aSecretThatOthersMayUseIsRefused(_ mode: Int) throws {
    let folder = try TestFolder([
      "gateway.lua": TestFolder.gateway.replacing(
        "mail = outbox()", with: "mail = outbox(), api_key = file \"data/key\""), "data/key": "s3cret",
    ])
    try folder.scratch.setMode(mode, of: "data/key")
    let path = folder.scratch.path("data/key")
    #expect(
      folder.problems() == [
        "gateway.lua:4: providers.email_code.api_key: data/key: has mode \(String(mode, radix: 8)): its group or others may read it. Run: chmod 600 \(path)"
      ])
    for own in [0o600, 0o400, 0o700] {
      try folder.scratch.setMode(own, of: "data/key")
      #expect(folder.problems() == [])
    }
  }

  @Test(
    arguments: [
      "phone_otp = { sms = webhook { url = \"http://localhost\", headers = { Authorization = file \"secret\" } } }",
      "phone_otp = { sms = twilio { account_sid = \"AC1\", auth_token = file \"secret\", from = \"+15550100\" } }",
      "email_code = { mail = smtp { url = \"smtps://localhost\", from = \"a@b.c\", user = \"u\", password = file \"secret\" } }",
    ]) func everySecretFromAFileIsJudged(_ provider: String) throws
  {
    let whole = "return gateway { public_url = \"http://localhost:8080\", providers = {\n\(provider) } }"
    let folder = try TestFolder(["gateway.lua": whole, "secret": "s3cret"])
    try folder.scratch.setMode(0o644, of: "secret")
    #expect(
      folder.problems().contains { $0.hasPrefix("gateway.lua:2:") && $0.contains("chmod 600") }, "\(folder.problems())")
    try folder.scratch.setMode(0o600, of: "secret")
    #expect(!folder.problems().contains { $0.contains("chmod") })
  }

  @Test func aPrivateKeyThatEverybodyMayReadIsWarnedOf() throws {
    let folder = try TestFolder([
      "gateway.lua": TestFolder.gateway.replacing(
        "region", with: "tls = { cert = \"c.pem\", key = \"k.pem\" }, region"), "c.pem": "x", "k.pem": "x",
    ])
    for (mode, isWarned) in [(0o644, true), (0o640, false), (0o600, false)] {
      try folder.scratch.setMode(mode, of: "k.pem")
      #expect(
        try folder.generation().warnings.contains { $0.path == "tls.key" && $0.message.contains("chmod 600") }
          == isWarned)
    }
  }

  /// In the format of the kernel. systemd's credentials are `r--r-----` and readable only by the service's user.
  private func list(_ entries: [(tag: UInt8, permissions: UInt8, id: UInt32)]) -> [UInt8] {
    [2, 0, 0, 0]
      + entries.flatMap { entry in
        [entry.tag, 0, entry.permissions, 0] + (0..<4).map { UInt8(truncatingIfNeeded: entry.id >> (8 * $0)) }
      }
  }

  @Test func accessControlListIsEvaluated() {
    let nobody = UInt32.max
    let own: [(tag: UInt8, permissions: UInt8, id: UInt32)] = [
      (0x01, 4, nobody), (0x02, 4, 999), (0x04, 0, nobody), (0x10, 4, nobody), (0x20, 0, nobody),
    ]
    #expect(!FilePermissions.isShared(list(own), user: 999))
    #expect(FilePermissions.isShared(list(own), user: 1000), "another user may read it")
    #expect(
      !FilePermissions.isShared(list(own.map { ($0.tag, $0.permissions, $0.tag == 2 ? 0 : $0.id) }), user: 1000),
      "root may read everything")
    for (index, tag) in [(2, 0x04), (4, 0x20)] as [(Int, UInt8)] {
      var open = own
      open[index] = (tag, 4, nobody)
      #expect(FilePermissions.isShared(list(open), user: 999), "\(tag)")
    }
    #expect(FilePermissions.isShared(list(own + [(0x08, 4, 27)]), user: 999), "a named group may read it")
    #expect(
      !FilePermissions.isShared(list(own.map { ($0.tag, $0.permissions, $0.id) } + [(0x08, 1, 27)]), user: 999),
      "permission to execute does not share it")
    #expect(
      FilePermissions.isShared([], user: 0) && FilePermissions.isShared([3, 0, 0, 0], user: 0)
        && FilePermissions.isShared([2, 0, 0, 0, 1], user: 0))
  }

  // MARK: region and hsts

  @Test(arguments: [
    ("ZZ", ", such as \"IN\""), ("AA", ", such as \"IN\""), ("EU", ", such as \"IN\""), ("UK", "; did you mean `GB`?"),
    ("in", "; did you mean `IN`?"), ("zz", ", such as \"IN\""), ("IND", ", such as \"IN\""), ("", ", such as \"IN\""),
  ])
  func regionThatIsNotACountryIsRefused(_ region: String, _ hint: String) throws {
    #expect(
      problems(try read("region = \"\(region)\",")) == [
        "gateway.lua:2: region: \"\(region)\" is not a country code of two capital letters (ISO 3166-1)\(hint)"
      ])
  }

  /// No country is assumed, so a number without a country code is refused until one is set.
  @Test func regionHasNoDefault() throws {
    #expect(try read("").get().gateway.region.isEmpty)
  }

  @Test(arguments: ["IN", "US", "GB", "XK", "AC", "ZW", "AD"]) func countriesAreRegions(_ region: String) throws {
    #expect(try read("region = \"\(region)\",").get().gateway.region == region)
  }

  @Test(
    arguments: [("", 31_536_000), ("hsts = \"30d\",", 2_592_000), ("hsts = \"0s\",", 0), ("hsts = false,", nil)]
      as [(String, Int?)])
  func strictTransportSecurityIsSent(_ line: String, _ seconds: Int?) throws {
    let secure = try read(line, publicURL: "https://localhost:8443").get().gateway
    #expect(secure.strictTransportSecurity == seconds.map { "max-age=\($0)" })
    #expect(try read(line).get().gateway.strictTransportSecurity == nil, "not sent without HTTPS")
  }

  @Test(arguments: [
    ("true", "must be a duration, such as \"365d\", or false"),
    ("31536000", "a bare number is not a duration; write \"31536000s\" for seconds or \"31536000m\" for minutes"),
    ("\"a year\"", "\"a year\" is not a duration; write \"90s\", \"10m\", \"1h30m\" or \"7d\""),
  ])
  func hstsIsADurationOrFalse(_ value: String, _ problem: String) throws {
    #expect(problems(try read("hsts = \(value),")) == ["gateway.lua:2: hsts: \(problem)"])
  }

  @Test(arguments: [
    "X-HTTP-Method", "X_Method_Override", "X-WEBAUTH-USER", "Moongate-Device", "HTTP2-Settings", "x-forwarded",
  ])
  func aRouteSetsNoReservedHeader(_ name: String) throws {
    let folder = try TestFolder([
      "routes.lua":
        "return routes {\n{ path = \"/**\", to = \"http://127.0.0.1:3000\", headers = { [\"\(name)\"] = \"1\" } },\n}"
    ])
    #expect(
      folder.problems() == ["routes.lua:2: routes[1].headers.\(name): the gateway itself sets or removes this header"])
  }
}
