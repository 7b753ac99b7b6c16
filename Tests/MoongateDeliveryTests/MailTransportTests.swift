import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateDelivery

/// With a configurable server. Tests/EndToEnd uses a real one with TLS.
@Suite("Mail by SMTP") struct MailTransportTests {
  static let mail = Message(
    channel: .mail, to: "a@example.com", subject: "Your code", text: "It is\n.\n012345", code: "012345")

  private func carrier(
    _ port: Int, _ encryption: SMTPSettings.Encryption = .none, user: String? = nil, helo: String = "auth.example.com"
  ) throws -> MailTransport {
    MailTransport(
      SMTPSettings(
        host: "127.0.0.1", port: port, encryption: encryption,
        from: try #require(MailSender("Moongate <no-reply@example.com>")),
        user: user.map { SecretText($0) }, password: user.map { _ in SecretText("sé:cret") }, helo: helo),
      clock: ManualClock(), random: SeededRandom(seed: 1))
  }

  @Test("is delivered completely, with bare envelope addresses, over one connection") func sends()
    async throws
  {
    let server = TestMailServer()
    try await server.run { port in
      let carrier = try carrier(port, user: "me")
      try await carrier.send(Self.mail)
      try await carrier.send(Self.mail)
      let lines = server.lines
      #expect(lines.filter { $0 == "MAIL FROM:<no-reply@example.com>" }.count == 2)
      #expect(lines.filter { $0 == "RCPT TO:<a@example.com>" }.count == 2)
      #expect(lines.filter { $0 == "." }.count == 2)
      #expect(lines.contains("Subject: Your code"))
      #expect(lines.contains("=2E"))
      #expect(server.connected == 1)
      let token = try #require(
        lines.compactMap { Data(base64Encoded: $0.replacing("AUTH PLAIN ", with: "")) }.first { $0.first == 0 })
      #expect(String(decoding: token, as: UTF8.self) == "\0me\0sé:cret")
    }
  }

  @Test("begins with the name of the gateway", arguments: ["auth.example.com", "[192.0.2.7]", "[IPv6:2001:db8::7]"])
  func greets(_ helo: String) async throws {
    let server = TestMailServer()
    try await server.run { port in
      try await carrier(port, helo: helo).send(Self.mail)
      #expect(server.lines.first == "EHLO \(helo)")
    }
  }

  @Test(
    "is refused with the server's last line, without its address and code",
    arguments: [
      ("RCPT", "504 5.5.2 Need fully-qualified hostname", "504 5.5.2 Need fully-qualified hostname"),
      ("RCPT", "550 5.1.1 <A@example.com>: unknown", "550 5.1.1 <(recipient)>: unknown"),
      (".", "554 spam: It is 012345\u{1b}[2J\u{85}", "554 spam: It is (code) [2J "),
      (".", "554-first\r\n554 last", "554 last"),
      ("AUTH", "535 5.7.8 authentication failed", "535 5.7.8 authentication failed"),
      ("connect", "554 no service", "554 no service"),
    ])
  func tells(word: String, reply: String, line: String) async throws {
    let server = TestMailServer()
    server.replies.withLock { $0[word] = reply }
    try await server.run { port in
      let carrier = try carrier(port, user: "me")
      let fault = await #expect(throws: TransportError.self) { try await carrier.send(Self.mail) }
      #expect(fault?.reason.hasSuffix("(\(line))") ?? false, "\(fault?.reason ?? "")")
    }
    #expect(ServerLine("250 " + String(repeating: "é", count: 400), about: Self.mail).text.count == 200)
  }

  @Test(
    "is refused with a reason without addresses; a refused message does not count against the server",
    arguments: [
      ("RCPT", "550 a@example.com unknown", true), ("RCPT", "450 later", true), ("MAIL", "552 too much", true),
      ("DATA", "554 no", true),
      (".", "554 spam", true), ("RCPT", "421 going down", false), ("connect", "554 no", false),
      ("connect", "220 bye", false),
      ("AUTH", "535 wrong", false),
    ])
  func refused(word: String, reply: String, isOfMessage: Bool) async throws {
    let server = TestMailServer()
    server.replies.withLock { $0[word] = reply }
    try await server.run { port in
      let carrier = try carrier(port, user: "me")
      let fault = await #expect(throws: TransportError.self) { try await carrier.send(Self.mail) }
      #expect(fault?.isOfMessage == isOfMessage, "\(fault?.reason ?? "")")
      #expect(fault?.reason.contains("a@example.com") == false)
      #expect(fault?.reason.isEmpty == false)
    }
  }

  @Test(
    "is not sent without TLS if TLS is required",
    arguments: [SMTPSettings.Encryption.required, .implicit])
  func downgrade(_ encryption: SMTPSettings.Encryption) async throws {
    let server = TestMailServer()
    try await server.run { port in
      let carrier = try carrier(port, encryption, user: "me")
      await #expect(throws: TransportError.self) { try await carrier.send(Self.mail) }
      #expect(!server.lines.contains { $0.hasPrefix("AUTH") || $0.hasPrefix("MAIL") })
    }
  }

  @Test("fails if no server accepts it or an address contains a command") func faults() async throws {
    let carrier = try carrier(1)
    let fault = await #expect(throws: TransportError.self) { try await carrier.send(Self.mail) }
    #expect(fault?.isOfMessage == false)
    await #expect(throws: TransportError("the address is not valid in a mail", isOfMessage: true)) {
      try await carrier.send(Message(channel: .mail, to: "a@b>\r\nRCPT TO:<c@d", text: "x"))
    }
  }
}
