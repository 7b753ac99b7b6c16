import Foundation
import HTTPTypes
import MoongateCore
import MoongateSDK
import MoongateTesting
import PhoneOTP
import Synchronization
import Testing

/// An approval on the phone, which the test gives or refuses.
final class PushApproval: FullProvider {
  private let answer = Mutex<StepAnswer?>(nil)

  let descriptor = ProviderDescriptor(
    name: "push", beginFields: [InputField(name: "phone", kind: .phone, isRequired: false)], submitFields: [],
    settings: [],
    policy: PolicySource(file: "push.lua", text: ""), identifierKinds: [.phone],
    outcomes: [Outcome("declined", "You declined.")],
    words: StepWords(
      title: "Approve on your phone", instruction: "Open the app and compare the number.",
      translations: ["hi": ["Approve on your phone": "अपने फ़ोन पर मंज़ूरी दें"]]))

  func decides(_ answer: StepAnswer) { self.answer.withLock { $0 = answer } }

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier? {
    input.fields["phone"] == nil ? nil : try PhoneOTP().readIdentifier(input)
  }

  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    .wait(poll: .seconds(3), state: [1], showing: [.secret("47")])
  }

  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    answer.withLock { $0 } ?? .wait(poll: .seconds(3), state: [1], showing: [.secret("48")])
  }
}

/// The page of a step that waits for an approval, used by a browser without JavaScript, and the same step over the API.
@Suite struct WaitPageTests {
  private func run(
    login: [StepRule] = [.test("phone_otp", "push")],
    _ body: @escaping @Sendable (Client, PushApproval) async throws -> Void
  )
    async throws
  {
    let push = PushApproval()
    let gateway = try HTTPGateway(providers: [PhoneOTP(), push]) { generation in
      for (name, steps) in [
        ("push", [StepRule.test("push")]), ("login", login), ("step_up", [.test("phone_otp", "push")]),
      ] {
        generation.flows[name] = .test(
          name, purpose: name == "step_up" ? .stepUp : .signIn, account: .existing, steps: steps)
      }
      generation.flows["register"] = .test("register", account: .new, steps: [.test("phone_otp")])
    }
    try await gateway.run { client in
      _ = try await client.register()
      client.gateway.clock.advance(by: .seconds(1_000))
      try await body(client, push)
    }
  }

  /// Opens the page of a first step that waits.
  private func waits(_ browser: Browser, flow: String = "push") async throws -> String {
    try await browser.visit("/auth/step?flow=\(flow)&with=push")
    let address = try #require(try await browser.submit(["field.phone": "9999999999"]).header("Location"))
    #expect(address.hasPrefix("/auth/step?id=fl_"))
    return address
  }

  @Test func pagePollsAndContinues() async throws {
    try await run { client, push in
      let browser = Browser(client)
      let address = try await waits(browser)
      let page = try await browser.visit(address)
      #expect(
        page.status == 200 && page.text.contains("<h1>Approve on your phone</h1>")
          && page.text.contains("<code dir=\"ltr\">47</code>"))
      #expect(
        page.text.contains("<noscript><meta http-equiv=\"refresh\" content=\"3; url=\(address)\"></noscript>"),
        "\(page.text)")
      #expect(page.text.contains("data-form=\"wait\" data-poll=\"3000\""))
      #expect(page.text.contains("aria-live=\"polite\"") && page.text.contains("role=\"status\""))
      #expect(page.text.contains("Check again") && page.text.contains("<a class=\"back\" href=\"/auth/login\""))
      let hindi = try await browser.visit(address + "&language=hi")
      #expect(hindi.text.contains("अपने फ़ोन पर मंज़ूरी दें") && hindi.text.contains("फिर जाँचें"))
      // The page reloads itself.
      client.gateway.clock.advance(by: .seconds(3))
      #expect(try await browser.visit(address).text.contains("<code dir=\"ltr\">48</code>"))
      push.decides(.proved(Proof()))
      #expect(try await browser.submit(["action": "poll"]).header("Location") == address, "not due yet")
      client.gateway.clock.advance(by: .seconds(3))
      // A HEAD request does not poll.
      #expect(try await client.send(.head, address, headers: browser.cookieHeader).status == 200)
      let done = try await browser.visit(address)
      #expect(done.status == 303 && done.header("Location") == "/home" && browser.cookies["moongate"] != nil)
    }
  }

  @Test func pollReturnsThePageOrTheNextAddress() async throws {
    try await run { client, push in
      let browser = Browser(client)
      let id = String(try await waits(browser).dropFirst("/auth/step?id=".count))
      let poll = {
        try await client.send(
          .post, "/auth/step",
          headers: [
            ("Accept", "text/html"), ("Origin", browser.origin), ("Content-Type", "application/x-www-form-urlencoded"),
            ("Moongate-Page", "script"),
          ] + browser.cookieHeader, body: "id=\(id)&action=poll")
      }
      #expect(try await poll().text.contains("data-form=\"wait\""))
      client.gateway.clock.advance(by: .seconds(3))
      push.decides(.proved(Proof()))
      #expect(try await poll()["next"] as? String == "/home")
    }
  }

  @Test func refusalIsShownWhereTheStepCanBeRestarted() async throws {
    try await run { client, push in
      for flow in ["push", "login"] {
        let browser = Browser(client)
        let address = try await waits(browser, flow: flow)
        client.gateway.clock.advance(by: .seconds(3))
        push.decides(.refused("declined"))
        let page = try await browser.visit(address)
        #expect(
          page.status == 401 && page.text.contains("You declined.") && !page.text.contains("http-equiv=\"refresh\""),
          "\(flow): \(page.text)")
        let again = try await browser.submit(["field.phone": "9999999999"])
        #expect(again.header("Location") == address, "\(flow): \(again.text)")
        #expect(try await browser.visit(address).text.contains("data-form=\"wait\""))
      }
    }
  }

  @Test func secondStepIsBegunByItselfAndMayBeSkipped() async throws {
    try await run(login: [.test("phone_otp"), .test("push", isSkippable: true)]) { client, push in
      let browser = Browser(client)
      try await browser.visit("/auth/login")
      let code = try #require(try await browser.submit(["phone": "9999999999"]).header("Location"))
      try await browser.visit(code)
      let sent = try #require(client.gateway.code(for: "+919999999999"))
      let address = try #require(try await browser.submit(["code": sent]).header("Location"))
      #expect(address.hasPrefix("/auth/step?id="), "\(address)")
      let page = try await browser.visit(address)
      #expect(page.text.contains("data-form=\"wait\"") && page.text.contains("value=\"skip\""))
      #expect(try await browser.submit(["action": "skip"]).header("Location") == "/home")
    }
  }

  @Test func waitingStepUpOffersTheOtherProvider() async throws {
    try await run { client, push in
      client.gateway.clock.advance(by: .seconds(1_000))
      let browser = Browser(client)
      try await browser.visit("/auth/login")
      let code = try #require(try await browser.submit(["phone": "9999999999"]).header("Location"))
      try await browser.visit(code)
      try await browser.submit(["code": try #require(client.gateway.code(for: "+919999999999"))])
      client.gateway.clock.advance(by: .seconds(1_000))
      try await browser.visit("/auth/step?flow=step_up&with=push")
      let address = try #require(try await browser.submit(["flow": "step_up"]).header("Location"))
      let page = try await browser.visit(address)
      #expect(
        page.text.contains("data-form=\"wait\"") && page.text.contains("name=\"with\" value=\"phone_otp\""),
        "\(page.text)")
      #expect(
        try await browser.submit(["with": "phone_otp"]).header("Location")?.hasPrefix("/auth/verify?id=") ?? false)
    }
  }

  @Test func apiReturnsThePollInterval() async throws {
    try await run { client, push in
      let id = try #require(try await client.call(.post, "/api/auth/flows", #"{"flow":"push"}"#)["id"] as? String)
      let step = { (answer: Answer) in answer["step"] as? [String: Any] ?? [:] }
      let begun = step(
        try await client.call(.post, "/api/auth/flows/\(id)/begin", #"{"provider":"push","phone":"+919999999999"}"#))
      #expect(begun["retry_after"] as? Int == 3 && (begun["fields"] as? [Any])?.isEmpty ?? false)
      #expect(step(try await client.call(.post, "/api/auth/flows/\(id)/submit", "{}"))["retry_after"] as? Int == 3)
      client.gateway.clock.advance(by: .seconds(3))
      #expect(step(try await client.call(.get, "/api/auth/flows/\(id)"))["retry_after"] as? Int == 0)
      let guess = try await client.call(.post, "/api/auth/flows/\(id)/submit", #"{"code":"1234"}"#)
      #expect(guess.status == 422 && guess["field"] as? String == "code")
      push.decides(.proved(Proof()))
      #expect(try await client.call(.post, "/api/auth/flows/\(id)/submit", "{}")["status"] as? String == "complete")
    }
  }
}
