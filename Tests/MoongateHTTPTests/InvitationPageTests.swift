import EmailCode
import HTTPTypes
import MoongateCore
import MoongateSDK
import MoongateTesting
import Password
import PhoneOTP
import Testing

@testable import MoongateHTTP

/// The link of an invitation, in a browser without JavaScript.
@Suite struct InvitationPageTests {
  private static func invite(_ gateway: TestGateway, _ named: Identifier?) async throws -> SecretText {
    let (code, now) = (InvitationCode(from: SystemRandom()), gateway.clock.now())
    let invitation = Invitation(
      id: "in_\(code.hash.trace)", code: code.hash, identifier: named, groups: [], createdAt: now,
      expiresAt: now + .seconds(600))
    _ = try await gateway.store.apply([.putInvitation(invitation)], at: now)
    return code.secret
  }

  /// Enters a number on the open page, and goes to the page for the code.
  private static func sendCode(_ browser: Browser, _ number: String) async throws {
    let sent = try await browser.submit(["phone": number])
    try await browser.visit(try #require(sent.header("Location"), "\(sent.text)"))
  }

  /// The link of an invitation opens the registration, also after a scanner of mail has opened it.
  @Test func linkOfAnInvitation() async throws {
    let http = try HTTPGateway { $0.accounts.registration = .invited() }
    try await http.run { client in
      let number = Identifier(kind: .phone, value: "+919999999999", display: "+91 99999 99999")
      let link = "/auth/invite?code=\(try await Self.invite(http.gateway, number).reveal())"
      for method in [HTTPRequest.Method.get, .head] { #expect(try await client.send(method, link).status == 303) }
      let browser = Browser(client)
      let opened = try await browser.visit(link)
      #expect(opened.header("Location") == "/auth/register?with=phone" && opened.header("Referrer-Policy") != nil)
      #expect(opened.setCookies.allSatisfy { $0.hasSuffix("; Path=/; HttpOnly; SameSite=Lax; Max-Age=3600") })
      let page = try await browser.visit("/auth/register?with=phone")
      #expect(page.status == 200 && page.text.contains("value=\"+919999999999\""), "\(page.text)")
      #expect(!page.text.contains("mgi_"))
      // Attack: another number, in a browser that has opened the link.
      try await Self.sendCode(browser, "99999 99998")
      let wrong = try await browser.submit(["code": try #require(http.gateway.code(for: "+919999999998"))])
      #expect(wrong.text.contains("This invitation is for another address or number."), "\(wrong.text)")
      try await browser.visit("/auth/register?with=phone")
      try await Self.sendCode(browser, "99999 99999")
      let done = try await browser.submit(["code": try #require(http.gateway.code(for: "+919999999999"))])
      #expect(done.status == 303 && browser.cookies["moongate"] != nil, "\(done.text)")
      #expect(try await http.gateway.store.accounts(after: nil, limit: 9).count == 1)
      let again = try await Browser(client).visit(link)
      #expect(again.status == 403 && again.text.contains("This invitation was used already."))
    }
  }

  /// Each reason has its own sentence, for those who have the code.
  @Test func whyALinkCannotBeUsed() async throws {
    let http = try HTTPGateway { $0.accounts.registration = .invited() }
    try await http.run { client in
      let codes = [try await Self.invite(http.gateway, nil), try await Self.invite(http.gateway, nil)]
      let revoked = try #require(InvitationCode(text: codes[0].reveal())).hash
      _ = try await http.gateway.store.apply([.endInvitation("in_\(revoked.trace)")], at: http.gateway.clock.now())
      http.gateway.clock.advance(by: .seconds(600))
      // Attack: a guessed code.
      for (code, sentence) in [
        (codes[0].reveal(), "This invitation was withdrawn."), (codes[1].reveal(), "This invitation has expired."),
        (InvitationCode(from: SystemRandom()).secret.reveal(), "This invitation cannot be used."),
        ("mgi_", "This invitation cannot be used."),
      ] {
        let page = try await Browser(client).visit("/auth/invite?code=\(code)")
        #expect(page.status == 403 && page.text.contains(sentence), "\(page.text)")
      }
    }
  }

  /// A refusal that a redirect passes on keeps its reason. Attack: a text of a link is shown.
  @Test func reasonInAnAddress() throws {
    var refusal = Refusal(.invitationInvalid, decision: DecisionID(text: "dc_x"))
    #expect(NextPage.text(of: refusal, as: "invitation_invalid") == "invitation_invalid")
    refusal.invitationProblem = .otherRecipient
    let text = NextPage.text(of: refusal, as: "invitation_invalid")
    #expect(text == "invitation_invalid.other_recipient")
    let words = Words(tag: "en", base: nil, ShippedWords.text(of: "en") ?? "", known: nil, problem: { _, _ in })
    #expect(NextPage.sentence(ofRefused: text, words) == InvitationProblem.otherRecipient.sentence)
    #expect(
      NextPage.sentence(ofRefused: "invitation_invalid.<b>evil</b>", words) == RefusalCode.invitationInvalid.sentence)
  }

  /// An invitation for an address requires its code also where registration is open. The page does not try to skip it.
  @Test func aCodeThatAnInvitationRequiresIsNotSkipped() async throws {
    let http = try HTTPGateway(providers: [PhoneOTP(), EmailCode(), Password()]) { generation in
      generation.flows["register"] = .test("register", account: .new, steps: [.test("phone_otp")])
      generation.flows["register_email"] = .test(
        "register_email", account: .new, steps: [.test("password"), .test("email_code", isSkippable: true)])
      generation.flows["verify_email"] = .test("verify_email", account: .existing, steps: [.test("email_code")])
    }
    try await http.run { client in
      let email = Identifier(try #require(EmailAddress("asha@example.org")))
      let browser = Browser(client)
      try await browser.visit("/auth/invite?code=\(try await Self.invite(http.gateway, email).reveal())")
      try await browser.visit("/auth/register?with=email")
      let sent = try await browser.submit([
        "first_name": "Asha", "last_name": "Rao", "email": "asha@example.org", "password": "correct horse battery",
      ])
      let page = try await browser.visit(try #require(sent.header("Location"), "\(sent.text)"))
      #expect(page.text.contains("asha@example.org") && browser.cookies["moongate"] == nil, "\(page.text)")
      let refused = try await http.gateway.audit.events(limit: 50).filter { $0.kind == .refused }
      #expect(refused.isEmpty, "\(refused)")
    }
  }

  /// Attack: a link with somebody else's invitation is sent to a user who has an account, or a code that is used up
  /// stays in the browser. Signing in is as before.
  @Test func anInvitationInTheBrowserChangesNoSignIn() async throws {
    let http = try HTTPGateway()
    try await http.run { client in
      _ = try await client.register()
      client.gateway.clock.advance(by: .seconds(900))
      let browser = Browser(client)
      let code = try await Self.invite(http.gateway, nil)
      try await browser.visit("/auth/invite?code=\(code.reveal())")
      for isUsed in [false, true] {
        if isUsed {
          let hash = try #require(InvitationCode(text: code.reveal())).hash
          _ = try await http.gateway.store.apply([.useInvitation(hash)], at: client.gateway.clock.now())
        }
        client.gateway.clock.advance(by: .seconds(120))
        try await browser.visit("/auth/login")
        try await Self.sendCode(browser, "99999 99999")
        let done = try await browser.submit(["code": try #require(http.gateway.code(for: "+919999999999"))])
        #expect(done.status == 303, "\(done.text)")
        _ = try await browser.post("/auth/logout", [:])
      }
      #expect(try await http.gateway.store.accounts(after: nil, limit: 9).count == 1)
    }
  }
}
