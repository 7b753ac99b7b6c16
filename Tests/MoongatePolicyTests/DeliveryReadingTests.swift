import MoongateCore
import MoongateSDK
import Testing

/// Reading delivery settings of gateway.lua.
@Suite struct DeliveryReadingTests {
  private static let environment = ["TOKEN": "s3cret", "TWO": "a\nb"]

  private static func gateway(sms: String = "outbox()", mail: String = "outbox()") -> String {
    "return gateway {\npublic_url = \"http://localhost:8080\", providers = {\nphone_otp = { sms = \(sms) },\nemail_code = { mail = \(mail) } } }"
  }

  private func read(sms: String = "outbox()", mail: String = "outbox()") throws -> any PolicyGeneration {
    try TestFolder(["gateway.lua": Self.gateway(sms: sms, mail: mail)]).load(environment: Self.environment).get()
  }

  private func delivery(_ generation: any PolicyGeneration, _ provider: ProviderName, _ field: String)
    -> DeliverySettings?
  {
    generation.gateway.providers[provider]?.deliveries[field]
  }

  @Test(
    arguments: [
      ("url = \"smtps://mail.example.com\"", 465, SMTPSettings.Encryption.implicit),
      ("url = \"smtp://mail.example.com\"", 587, .required),
      ("url = \"smtp://mail.example.com:25\", starttls = false", 25, .none),
      ("url = \"smtp://localhost:2525\"", 2525, .none),
      ("url = \"smtp://127.0.0.1\", starttls = true", 587, .required),
      ("url = \"smtps://[::1]:10465\"", 10465, .implicit),
    ])
  func mailServers(_ body: String, _ port: Int, _ encryption: SMTPSettings.Encryption) throws {
    let generation = try read(
      mail: "smtp { from = \"Moongate <no-reply@example.com>\", user = \"me\", password = env \"TOKEN\", \(body) }")
    guard case .smtp(let settings)? = delivery(generation, "email_code", "mail") else {
      Issue.record("no smtp")
      return
    }
    #expect(settings.port == port)
    #expect(settings.encryption == encryption)
    #expect(settings.from == MailSender("Moongate <no-reply@example.com>"))
    #expect(settings.from.name == "Moongate")
    #expect(settings.password?.reveal() == "s3cret")
    #expect(!"\(settings)".contains("s3cret"))
    let isWarned = generation.warnings.contains { $0.path == "providers.email_code.mail.starttls" }
    #expect(isWarned == body.contains("false"))
  }

  /// RFC 5321 section 4.1.1.1: the client's host name, or an address literal. Strict servers refuse others.
  @Test(arguments: [
    ("https://auth.example.com", "", "auth.example.com"), ("https://192.0.2.7", "", "[192.0.2.7]"),
    ("https://[2001:db8::7]:8443", "", "[IPv6:2001:db8::7]"),
    ("https://auth.example.com", ", helo = \"Relay.example.com\"", "relay.example.com"),
    ("https://auth.example.com", ", helo = \"[192.0.2.8]\"", "[192.0.2.8]"),
    ("https://auth.example.com", ", helo = \"192.0.2.8\"", "[192.0.2.8]"),
    ("https://auth.example.com", ", helo = \"[IPv6:2001:db8::8]\"", "[IPv6:2001:db8::8]"),
  ])
  func nameForMailServers(_ publicURL: String, _ more: String, _ helo: String) throws {
    let folder = try TestFolder([
      "gateway.lua": """
      return gateway {
        public_url = "\(publicURL)", region = "IN",
        providers = {
          phone_otp = { sms = webhook { url = "https://sms.example.com/" } },
          email_code = { mail = smtp { url = "smtps://mail.example.com", from = "a@example.com"\(more) } },
        },
      }
      """
    ])
    guard case .smtp(let settings)? = delivery(try folder.generation(), "email_code", "mail") else {
      Issue.record("no smtp")
      return
    }
    #expect(settings.helo == helo)
  }

  @Test func sites() throws {
    let hook = try read(
      sms:
        "webhook { url = \"https://sms.example.com/send?x=1\", headers = { Authorization = env \"TOKEN\", [\"X-A\"] = \"b\" } }"
    )
    #expect(
      delivery(hook, "phone_otp", "sms")
        == .webhook(
          WebhookSettings(
            url: "https://sms.example.com/send?x=1",
            headers: [
              .init(name: "Authorization", value: SecretText("s3cret")), .init(name: "X-A", value: SecretText("b")),
            ])))
    #expect(hook.warnings.allSatisfy { !$0.path.contains("sms") })
    let twilio = try read(sms: "twilio { account_sid = \"AC0a\", auth_token = env \"TOKEN\", from = \"+15550100\" }")
    #expect(
      delivery(twilio, "phone_otp", "sms")
        == .twilio(TwilioSettings(account: "AC0a", token: SecretText("s3cret"), from: "+15550100")))
    for (url, isWarned) in [
      ("http://sms.example.com", true), ("http://127.0.0.1:9", false), ("http://localhost:9/x", false),
    ] {
      let generation = try read(sms: "webhook { url = \"\(url)\" }")
      #expect(
        generation.warnings.contains { $0.message.contains("unencrypted: use https outside this machine") } == isWarned,
        "\(url)")
    }
  }

  @Test(
    arguments: [
      (
        "smtp { url = \"x\", from = \"a@b\" }", "outbox()",
        "3: providers.phone_otp.sms: smtp sends mail, not SMS; use webhook { … }, twilio { … } or outbox()"
      ),
      (
        "outbox()", "twilio {}",
        "4: providers.email_code.mail: twilio sends SMS, not mail; use smtp { … }, webhook { … } or outbox()"
      ),
      (
        "5", "outbox()",
        "3: providers.phone_otp.sms: must be a delivery method, as in outbox(), smtp { … }, webhook { … } or twilio { … }, not the number 5"
      ),
      (
        "webhook { uri = \"https://a\" }", "outbox()",
        "3: providers.phone_otp.sms.uri: unknown field; did you mean `url`? (the URL, such as \"https://sms.example.com/send\")"
      ),
      (
        "webhook { url = \"ftp://a\" }", "outbox()",
        "3: providers.phone_otp.sms.url: \"ftp://a\" is not a valid URL, such as \"https://sms.example.com/send\""
      ),
      (
        "webhook { url = \"https://u:p@a/\" }", "outbox()",
        "3: providers.phone_otp.sms.url: \"https://u:p@a/\" is not a valid URL, such as \"https://sms.example.com/send\""
      ),
      (
        "webhook { url = \"https://a\", headers = { Host = \"b\" } }", "outbox()",
        "3: providers.phone_otp.sms.headers.Host: is not a header that can be set here"
      ),
      (
        "webhook { url = \"https://a\", headers = { X = env \"TWO\" } }", "outbox()",
        "3: providers.phone_otp.sms.headers.X: must be one line without control characters"
      ),
      (
        "twilio { account_sid = \"x\", auth_token = env \"TOKEN\", from = \"+1555\" }", "outbox()",
        "3: providers.phone_otp.sms.account_sid: is not a Twilio account SID: AC and 32 characters"
      ),
      (
        "twilio { account_sid = \"AC00\", auth_token = \"x\", from = \"+1555\" }", "outbox()",
        "3: providers.phone_otp.sms.auth_token: must be a secret: use env \"NAME\", file \"path\" or credential \"name\" instead of the value itself"
      ),
      (
        "outbox()", "smtp { url = \"mail.example.com\", from = \"a@b\" }",
        "4: providers.email_code.mail.url: \"mail.example.com\" is not a mail server URL; write \"smtps://mail.example.com\", or \"smtp://mail.example.com:587\" for STARTTLS"
      ),
      (
        "outbox()", "smtp { url = \"smtps://a\", from = \"me\" }",
        "4: providers.email_code.mail.from: \"me\" is not a valid sender; write \"no-reply@example.com\" or \"Moongate <no-reply@example.com>\""
      ),
      (
        "outbox()", "smtp { url = \"smtps://a\", from = \"a@b\", user = \"me\" }",
        "4: providers.email_code.mail.user: requires password, which is missing"
      ),
      (
        "outbox()", "smtp { url = \"smtps://a\", from = \"a@b\", starttls = true }",
        "4: providers.email_code.mail.starttls: applies only to smtp://; smtps:// always uses TLS"
      ),
      (
        "outbox()", "smtp { url = \"smtps://a\", from = \"a@b\", ca = \"none.pem\" }",
        "4: providers.email_code.mail.ca: none.pem: the file does not exist"
      ),
      (
        "outbox()", "smtp { url = \"smtps://a\", from = \"a@b\", helo = \"a b\" }",
        "4: providers.email_code.mail.helo: \"a b\" is not the name of a host, such as \"auth.example.com\", and not an address, such as \"[192.0.2.1]\""
      ),
    ])
  func problems(_ sms: String, _ mail: String, _ problem: String) throws {
    let folder = try TestFolder(["gateway.lua": Self.gateway(sms: sms, mail: mail)])
    #expect(folder.problems(environment: Self.environment) == ["gateway.lua:" + problem])
  }

  @Test(
    arguments: HopByHopHeaders.names.map(\.description) + ["host", "content-type", "content-length"],
    [{ $0 }, { $0.uppercased() }] as [@Sendable (String) -> String])
  func webhooksCannotSetHeadersOfTheConnection(_ name: String, _ spelled: @Sendable (String) -> String) throws {
    let header = spelled(name)
    let sms = "webhook { url = \"https://a\", headers = { [\"\(header)\"] = \"x\" } }"
    #expect(
      try TestFolder(["gateway.lua": Self.gateway(sms: sms)]).problems(environment: Self.environment) == [
        "gateway.lua:3: providers.phone_otp.sms.headers.\(header): is not a header that can be set here"
      ])
  }
}
