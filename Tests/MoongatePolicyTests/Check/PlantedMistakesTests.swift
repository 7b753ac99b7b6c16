import MoongateCore
import Testing

@testable import MoongatePolicy

/// A folder with ten typical mistakes: `check` prints ten lines, each with its file and line, and a suggestion if
/// possible.
@Suite struct PlantedMistakesTests {
  private static let files = [
    "gateway.lua": """
    return gateway {
      public_url = "http://localhost:8080",
      lisen = "127.0.0.1:8080",
      region = "in",
      providers = { phone_otp = { sms = outbox() }, email_code = { mail = outbox() } },
    }
    """,
    "policies/phone_otp.lua": """
    return policy "phone_otp" {
      code = { length = 6, ttl = 600 },
      limits = {
        send = { on = "send", per = "phon", max = 4, window = "15m" },
        verify = { on = "verify", per = "phone", max = 5, windw = "24h",
                   lock = "15m" },
      },
      message = "{code} is your {servce} code",
    }
    """,
    "policies/email_code.lua": """
    return polcy "email_code" { unknown_account = "conceal" }
    """,
    "flows/login.lua": """
    return flow "login" {
      account = "existing",
      steps = {
        { "phone_opt" },
      },
    }
    """,
    "routes.lua": """
    return routes {
      { path = "/**", to = "http://127.0.0.1:3000" },
      { path = "/pay/**", to = "http://127.0.0.1:3000", flow = "login" },
      { path = "/x", to = "http://127.0.0.1:3000", methods = { "get" } },
    }
    """,
  ]

  @Test func plantedMistakesAreReportedWithSuggestions() throws {
    let problems = try TestFolder(Self.files).problems()
    #expect(
      problems == [
        "flows/login.lua:4: steps[1]: unknown provider \"phone_opt\"; did you mean `phone_otp`?",
        "gateway.lua:3: lisen: unknown field; did you mean `listen`? (an address, such as \"127.0.0.1:8080\")",
        "gateway.lua:4: region: \"in\" is not a country code of two capital letters (ISO 3166-1); did you mean `IN`?",
        "policies/email_code.lua:1: unknown name `polcy`; did you mean `policy`?",
        "policies/phone_otp.lua:2: code.ttl: a bare number is not a duration; write \"600s\" for seconds or \"600m\" for minutes",
        "policies/phone_otp.lua:4: limits.send.per: \"phon\" is not known; did you mean `phone`?",
        "policies/phone_otp.lua:5: limits.verify.windw: unknown field; did you mean `window`? (a duration, such as \"15m\")",
        "policies/phone_otp.lua:8: message: unknown part {servce}; did you mean `service`?",
        "routes.lua:3: this route can never match: routes.lua:2 matches all its requests first",
        "routes.lua:4: routes[3].methods: \"get\" is not a method in upper case; did you mean `GET`?",
      ])
    #expect(problems.count { $0.contains("did you mean") || $0.contains("; write ") } == 9)
  }

  /// Problems that may be intended are warnings and do not change the exit status.
  @Test func suspiciousSettingsAreWarnings() throws {
    let folder = try TestFolder([
      "gateway.lua": TestFolder.gateway.replacing("http://localhost:8080", with: "http://auth.example.com")
        .replacing("outbox()", with: "outbox { allow_public = true }"),
      "policies/phone_otp.lua": """
      return policy "phone_otp" {
        code = { ttl = "1m" },
        timers = { resend_after = { "60s", "120s" } },
        limits = {
          net = { on = "send", per = "ip", max = 4, window = "15m",
                  lock = { "1h", "15m" } },
          verify = { on = "verify", per = "identifier", max = 5, window = "24h", lock = "15m" },
        },
      }
      """,
      "flows/login.lua": """
      return flow "login" {
        account = "existing",
        steps = { { "phone_otp" },
          { "phone_otp", skippable = true },
        },
      }
      """,
    ])
    #expect(
      try folder.generation().warnings.map(\.description) == [
        "flows/login.lua:4: steps[2]: repeats steps[1], which has been passed by then (`phone_otp`): remove it",
        "gateway.lua:2: public_url: codes, PINs and cookies would be sent unencrypted: use https outside this machine",
        "gateway.lua:4: providers.email_code.mail: outbox sends nothing and shows every code on the admin listener, and public_url is http://auth.example.com: for tests only",
        "gateway.lua:4: providers.phone_otp.sms: outbox sends nothing and shows every code on the admin listener, and public_url is http://auth.example.com: for tests only",
        "policies/phone_otp.lua:2: code.ttl: is shorter than the longest wait of timers.resend_after: a code expires before a new one can be requested",
        "policies/phone_otp.lua:4: limits: no limit on send counts per phone, email, identifier or account: requests for one account are unlimited; add a limit with per = \"identifier\"",
        "policies/phone_otp.lua:4: limits: the default limits `hard`, `send`, `send_day`, `send_ip`, `send_network`, `send_prefix` and `sms_global` are replaced and no longer in effect",
        "policies/phone_otp.lua:6: limits.net.lock: a lock is shorter than the one before it: sort the list in ascending order",
      ])
  }

  @Test(arguments: [
    ("http://localhost:8080", false), ("http://gate.localhost", false), ("http://127.9.9.9", false),
    ("http://[::1]:80", false),
    ("http://127.example.com", true), ("http://10.0.0.1", true), ("https://10.0.0.1", false),
  ]) func plainHTTPWarnsUnlessLocal(_ url: String, _ isWarned: Bool) throws {
    let gateway = TestFolder.gateway.replacing("http://localhost:8080", with: url).replacing(
      "outbox()", with: "outbox { allow_public = true }")
    let folder = try TestFolder(["gateway.lua": gateway])
    #expect(try folder.generation().warnings.contains { $0.path == "public_url" } == isWarned)
  }
}
