import EmailCode
import MoongateSDK
import Testing

@Suite("Addresses") struct AddressTests {
  private let provider = EmailCode()

  private func read(_ typed: String) throws -> Identifier {
    try provider.readIdentifier(ProviderInput(fields: ["email": .text(typed)], defaultRegion: "IN"))
  }

  @Test(
    "all spellings of an address give one identifier",
    arguments: [
      "asha@example.com", "Asha@Example.COM", " asha@example.com ", "\tASHA@EXAMPLE.COM", "asha@example.com\n",
      "asha@example.com\r", "asha@example.com\u{00A0}", "\u{202E}asha@example.com",
    ])
  func spellings(typed: String) throws {
    let identifier = try read(typed)
    #expect(identifier.kind == .email)
    #expect(identifier.value == "asha@example.com")
    #expect(identifier.display == "asha@example.com")
    #expect(identifier.attributes == ["domain": "example.com"])
  }

  @Test(
    "real addresses are accepted",
    arguments: [
      "a@b.co", "asha+shop@example.com", "o'brien@example.com", "asha.rao@mail.example.co.in", "x_y-z@example.com",
      "1@2.example.org",
      "asha@xn--bcher-kva.example", "a!#$%&'*+-/=?^_`{|}~b@example.com",
    ])
  func accepted(typed: String) throws { #expect(try read(typed).value == typed) }

  @Test(
    "invalid addresses and attacks are refused",
    arguments: [
      "", " ", "@", "asha", "asha@", "@example.com", "asha@localhost", "asha@example.com.", "asha@.example.com",
      "asha@example..com",
      "asha@-example.com", "asha@example-.com", ".asha@example.com", "asha.@example.com", "as..ha@example.com",
      "asha@192.0.2.1", "asha@[192.0.2.1]",
      // Quoted local parts, comments, display names, lists, routes.
      "\"asha\"@example.com", "\"a b\"@example.com", "\"a@b\"@example.com", "asha(home)@example.com",
      "Asha <asha@example.com>",
      "asha@example.com,mallory@example.com", "asha@example.com;mallory@example.com",
      "asha@example.com mallory@example.com", "a@b@example.com",
      "@relay.example:asha@example.com", "asha%evil.example@", "mailto:asha@example.com?cc=x@example.com",
      // Header injection.
      "asha@example.com\r\nBcc: mallory@example.com", "asha@example.com\nBcc: mallory@example.com",
      "a\r\nsha@example.com", "asha@example.com%0d%0aBcc:x", "asha@example.com\u{0}", "asha\u{0}@example.com",
      "asha\u{7F}@example.com",
      // Homoglyphs and bidirectional characters.
      "аsha@example.com", "asha＠example.com", "as\u{202E}ha@example.com", "İ@example.com", "ﬀ@example.com",
      "😀@example.com",
      "<script>@example.com", "asha@example.com'; drop table accounts; --", "asha@example.com\\",
    ])
  func refused(typed: String) {
    #expect { try read(typed) } throws: { error in
      (error as? InputProblem).map { $0.field == "email" && $0.reason == .invalidEmail && !$0.detail.isEmpty } ?? false
    }
  }

  @Test("an international domain equals its ASCII form") func international() throws {
    #expect(try read("asha@Bücher.example").value == "asha@xn--bcher-kva.example")
  }

  @Test("at most 64 bytes before the @ and 254 in total") func lengths() throws {
    let local = String(repeating: "a", count: 64)
    #expect(try read(local + "@example.com").value == local + "@example.com")
    #expect(throws: InputProblem.self) { try read(local + "a@example.com") }
    let label = String(repeating: "b", count: 63)
    let longest = local + "@" + [label, label, String(repeating: "c", count: 61)].joined(separator: ".")
    #expect(longest.count == 254)
    #expect(try read(longest).value == longest)
    #expect(throws: InputProblem.self) { try read(longest + "d") }
    #expect(throws: InputProblem.self) { try read("a@" + label + "b.com") }
    for count in [300, 100_000] {
      #expect(throws: InputProblem.self) { try read(String(repeating: "a", count: count) + "@example.com") }
    }
  }

  @Test("fields of another type, and missing fields", arguments: [InputValue.other, .flag(true), nil]) func types(
    value: InputValue?
  ) {
    #expect {
      try provider.readIdentifier(ProviderInput(fields: value.map { ["email": $0] } ?? [:], defaultRegion: "IN"))
    } throws: { error in
      (error as? InputProblem).map { $0.field == "email" && $0.reason == .invalidInput } ?? false
    }
  }
}

@Suite("The code message") struct MailTests {
  private struct NoWeb: WebClient {
    func send(_ request: WebRequest) async throws(WebFault) -> WebAnswer { throw WebFault(reason: "no web") }
  }

  private actor Recorder: Messenger {
    private(set) var sent: [Message] = []

    func send(_ message: Message) async throws(DeliveryFault) { sent.append(message) }
  }

  @Test("contains the code in its text, not in its subject") func text() async throws {
    let recorder = Recorder()
    let address = try EmailCode().readIdentifier(
      ProviderInput(fields: ["email": .text("asha@example.com")], defaultRegion: "IN"))
    try await EmailCode().deliver(
      CodeMessage(
        code: "532917", text: "532917 is your Moongate verification code.", domainBoundLine: "@localhost #532917",
        service: "Moongate"),
      to: address, with: StepTools(randomBytes: { _ in [] }, web: NoWeb(), messenger: recorder))
    let sent = try #require(await recorder.sent.first)
    #expect(sent.channel == .mail)
    #expect(sent.to == "asha@example.com")
    #expect(sent.subject == "Your Moongate verification code")
    #expect(sent.text.hasPrefix("532917 is your Moongate verification code."))
    #expect(!sent.text.contains("@localhost"), "this line is read by phones")
    #expect(sent.code == "532917")
  }

  @Test(
    "the default policy has the expected numbers",
    arguments: [
      #"length = 6, alphabet = "digits", ttl = "15m""#, #"resend_after = { "60s" }"#,
      #"per = "email", max = 4, window = "15m""#,
      #"max = 5, window = "24h", counts = "failures", lock = { "15m", "1h", "6h", "24h" }"#,
      #"unknown_account = "conceal""#,
    ])
  func numbers(said: String) {
    #expect(
      EmailCode().descriptor.policy.text.split(whereSeparator: \.isWhitespace).joined(separator: " ").contains(said))
  }

  @Test("declares its fields and settings") func descriptor() {
    let descriptor = EmailCode().descriptor
    #expect(descriptor.name.rawValue == "email_code")
    #expect(descriptor.beginFields.map(\.name) == ["email"])
    #expect(descriptor.submitFields.map(\.name) == ["code"])
    #expect(descriptor.settings.map(\.name) == ["mail"])
    #expect(descriptor.identifierKinds == [.email])
  }
}
