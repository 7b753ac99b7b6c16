import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Invitations that the gateway sends.
@Suite struct InvitationSendingTests {
  private static func bench(
    _ registration: RegistrationRule = .invited(), _ change: (inout TestGeneration) -> Void = { _ in }
  ) async throws -> EngineTestBench {
    try await EngineTestBench.full { generation in
      generation.accounts = AccountRules(registration: registration)
      change(&generation)
    }
  }

  private static func administration(_ bench: EngineTestBench) -> AccountAdministration {
    AccountAdministration(
      store: bench.store, providers: bench.engine.providers, keys: bench.keys, clock: bench.clock,
      random: SystemRandom()
    ).acting(as: OperatorIdentity(name: "ravi", tool: "test"))
  }

  private static func send(
    _ bench: EngineTestBench, to digits: String? = "911111", _ kind: IdentifierKind = .email, in language: String? = nil
  ) async throws -> InvitationSending {
    let identifier = digits.map { Identifier(kind: kind, value: "+\($0)", display: "+\($0)") }
    return try await bench.engine.sendInvitation(
      NewInvitation(identifier: identifier, groups: [], lifetime: .seconds(600)), in: language,
      by: Self.administration(bench), client: bench.client())
  }

  /// The code in the last message that carried a link.
  private static func code(_ bench: EngineTestBench) throws -> String {
    let text = try #require(bench.delivery.notices.last?.text)
    return String(try #require(text.firstMatch(of: /invite\?code=(mgi_[A-Za-z0-9_\-]{43})/)).1)
  }

  /// Registers the number or address of these digits with the code.
  private static func register(
    _ bench: EngineTestBench, _ digits: String, _ kind: IdentifierKind, by code: String
  ) async throws -> Result<FlowView, Refusal> {
    let client = bench.client().invited(by: SecretText(code))
    let provider = kind == .email ? EngineTestBench.mail : EngineTestBench.phone
    let id = try await bench.engine.create("register", returnTo: nil, browser: nil, client: client).get().id
    _ = await bench.engine.begin(
      id, provider: provider.rawValue, fields: ["phone": .text(digits)], client: client)
    await bench.engine.deliveriesEnd()
    return await bench.submit(id, bench.code)
  }

  private static func events(_ bench: EngineTestBench, _ kind: AuditEvent.Kind) async throws -> [AuditEvent] {
    try await bench.audit.events(limit: 500).filter { $0.kind == kind }
  }

  @Test(arguments: [IdentifierKind.email, .phone]) func theMessageHasTheLink(_ kind: IdentifierKind) async throws {
    let bench = try await Self.bench()
    guard case .sent(let invitation) = try await Self.send(bench, kind) else {
      Issue.record("not sent")
      return
    }
    let message = try #require(bench.delivery.notices.last)
    let gateway = bench.generations.current.gateway
    #expect(message.channel == (kind == .email ? .mail : .sms) && message.to == "+911111")
    #expect(message.subject == (kind == .email ? "\(gateway.service): Your invitation" : nil))
    let details = ["Only +911111", invitation.expiresAt.minuteOfMessage]
    let parts = [gateway.service, "\(gateway.publicURL)/auth/"] + (kind == .email ? details : [])
    for part in parts { #expect(message.text.contains(part), "\(message.text)") }
    #expect(message.text.contains("\n") == (kind == .email) && message.style?.language == "en")
    let sent = try #require(try await Self.events(bench, .invitationSent).first)
    #expect(sent.detail["invitation"] == invitation.id && sent.detail["channel"] == message.channel.rawValue)
    #expect(sent.detail["operator"] == "ravi" && sent.identifier == bench.keys.logHash("+911111"))
    #expect(try await Self.register(bench, "911111", kind, by: try Self.code(bench)).get().status == .complete)
  }

  /// Attack: the code is in the log, the audit trail or the list.
  @Test func theCodeIsOnlyInTheMessage() async throws {
    let bench = try await Self.bench()
    let outcome = try await Self.send(bench)
    let code = try Self.code(bench)
    let events = try await bench.audit.events(limit: 100)
    let listed = try await Self.administration(bench).invitations(limit: 9)
    #expect(listed.count == 1)
    for text in ["\(outcome)", "\(events)", "\(listed)"] + bench.log.lines {
      #expect(!text.contains(code), "\(text)")
    }
    #expect(!"\(events)".contains("+911111"))
  }

  /// Attack: a mail server repeats the link in its refusal, whole or cut off.
  @Test func codesInFaultsAreRedacted() {
    let code = "mgi_" + String(repeating: "a-_9", count: 10) + "abc"
    let said = InvitationCode.redacted("554 blocked (https://a.example/auth/invite?code=\(code)), \(code.prefix(30))")
    #expect(said == "554 blocked (https://a.example/auth/invite?code=mgi_[redacted]), mgi_[redacted]")
  }

  @Test func anUndeliveredInvitationIsNotLost() async throws {
    let bench = try await Self.bench()
    bench.delivery.fails = true
    guard case .failed(let made, let fault) = try await Self.send(bench) else {
      Issue.record("sent")
      return
    }
    #expect(fault == "told to fail")
    #expect(try await Self.administration(bench).invitations(limit: 9) == [made.invitation])
    let failed = try #require(try await Self.events(bench, .deliveryFailed).first)
    #expect(failed.detail["invitation"] == made.invitation.id && failed.detail["fault"] == "told to fail")
    #expect(try await Self.events(bench, .invitationSent).isEmpty)
    bench.delivery.fails = false
    let view = try await Self.register(bench, "911111", .email, by: made.code.reveal()).get()
    #expect(view.status == .complete)
  }

  /// Nothing is created where nothing can be sent.
  @Test(arguments: ["recipient", "registration", "provider", "language"])
  func inputThatIsRefused(_ wrong: String) async throws {
    let bench = try await Self.bench(wrong == "registration" ? .closed : .invited()) {
      if wrong == "provider" { $0.gateway.providers = [:] }
    }
    let outcome = try await Self.send(
      bench, to: wrong == "recipient" ? nil : "911111", in: wrong == "language" ? "xx" : "en-GB")
    guard case .refused(let problem) = outcome else {
      Issue.record("\(outcome)")
      return
    }
    #expect(problem.field == (["recipient", "language"].contains(wrong) ? wrong : "send"))
    #expect(bench.delivery.notices.isEmpty)
    #expect(try await Self.administration(bench).invitations(limit: 9).isEmpty)
  }

  /// Attack: an admin token floods one user with messages, also where the delivery fails.
  @Test(arguments: [false, true]) func oneUserGetsFew(_ fails: Bool) async throws {
    let bench = try await Self.bench()
    bench.delivery.fails = fails
    for _ in 0..<FlowEngine.maxInvitationsToOne { _ = try await Self.send(bench) }
    guard case .limited(let until) = try await Self.send(bench) else {
      Issue.record("not limited")
      return
    }
    #expect(until > bench.clock.now() && until <= bench.clock.now() + .seconds(86_400))
    bench.delivery.fails = false
    let invitations = try await Self.administration(bench).invitations(limit: 9)
    #expect(invitations.count == FlowEngine.maxInvitationsToOne)
    guard case .sent = try await Self.send(bench, to: "922222") else {
      Issue.record("another user gets one")
      return
    }
    bench.clock.advance(by: .seconds(86_401))
    guard case .sent = try await Self.send(bench) else {
      Issue.record("the next day")
      return
    }
  }

  /// Attack: SMS pumping. An admin token sends invitations to a range of numbers.
  @Test func allUsersTogetherGetFewBySMS() async throws {
    let bench = try await Self.bench()
    for number in 0..<FlowEngine.maxInvitations(by: .sms) {
      _ = try await Self.send(bench, to: "91\(1000 + number)", .phone)
    }
    #expect(bench.delivery.notices.count == FlowEngine.maxInvitations(by: .sms))
    guard case .limited = try await Self.send(bench, .phone) else {
      Issue.record("not limited")
      return
    }
    guard case .sent = try await Self.send(bench, .email) else {
      Issue.record("mail has a limit of its own")
      return
    }
  }

  /// Attack: an operator, or somebody who reads the message, learns from it whether an address has an account.
  @Test func anAccountThatExistsGetsTheSameMessage() async throws {
    let bench = try await EngineTestBench.full()
    _ = try await bench.pass("register", EngineTestBench.mail, "911111", by: bench.client())
    var texts: [String] = []
    for digits in ["911111", "922222"] {
      guard case .sent = try await Self.send(bench, to: digits) else {
        Issue.record("not sent")
        return
      }
      let text = try #require(bench.delivery.notices.last?.text)
      texts.append(text.replacing(try Self.code(bench), with: "CODE").replacing("+\(digits)", with: "USER"))
    }
    #expect(texts.count == 2 && texts[0] == texts[1])
  }

  /// An address outside of `domains` is what invitations are for. Attack: another address of such a domain uses it.
  @Test func anAddressOutsideOfTheDomainsIsInvited() async throws {
    let bench = try await Self.bench(.invited(domains: ["example.com"]))
    _ = try await Self.send(bench)
    let code = try Self.code(bench)
    let other = try await Self.register(bench, "922222", .email, by: code)
    #expect(other.refusal?.code == .invitationInvalid)
    #expect(try await Self.register(bench, "911111", .email, by: code).get().status == .complete)
  }

  /// Attack: a recipient who is called `{time}`, or a service that is called `{recipient}`.
  @Test func placeholdersInValuesStay() {
    let generation = TestGeneration(gateway: .test(), flows: [], policies: [])
    let english = EnglishMessages().language([], of: generation, providers: [])
    let message = InvitationMessage(
      service: "{recipient}", recipient: "{time}@example.com", link: "https://a.example/auth/invite?code=mgi_x",
      expiresAt: Timestamp(milliseconds: 0))
    let text = message.text(by: .mail, in: english)
    #expect(
      text.hasPrefix(
        "{recipient}: You are invited to create an account.\n\nOnly {time}@example.com can use this link, once, "
          + "until 1970-01-01 00:00 UTC:\n\nhttps://a.example/auth/invite?code=mgi_x\n\n"))
  }

  /// An SMS in English has room for 160 characters. A second part costs as much as the first.
  @Test func anInvitationIsOneSMS() {
    let generation = TestGeneration(gateway: .test(), flows: [], policies: [])
    let english = EnglishMessages().language([], of: generation, providers: [])
    let code = InvitationCode(from: SystemRandom()).secret.reveal()
    let text = InvitationMessage(
      service: "Example", recipient: "+91 99999 99999", link: "https://auth.example.com/auth/invite?code=\(code)",
      expiresAt: Timestamp(milliseconds: 0)
    ).text(by: .sms, in: english)
    #expect(text.hasPrefix("Example: You are invited to create an account. https://auth.example.com/auth/invite?"))
    #expect(text.utf8.count <= 160, "\(text)")
  }
}
