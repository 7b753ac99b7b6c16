import HTTPTypes
import MoongateCore
import MoongateHTTP
import MoongateSDK
import MoongateTesting
import PhoneOTP
import Testing

/// The page and the API of a provider with a ceremony, used by a client without the browser's credential API.
@Suite struct CeremonyPageTests {
  /// Accepts any answer that contains `right`.
  private struct Toy: FullProvider {
    private static let answer = InputField(name: "answer", kind: .json)
    private static let shown = Shown.ceremony(.get, options: #"{"challenge":"<AAAA>\"&","rpId":"localhost"}"#)

    var descriptor: ProviderDescriptor {
      ProviderDescriptor(
        name: "toy", beginFields: [], submitFields: [Self.answer], settings: [],
        policy: PolicySource(file: "toy.lua", text: ""), identifierKinds: [],
        outcomes: [Outcome("wrong_key", "This key is not yours.")],
        words: StepWords(title: "Key", page: ["ceremony_cancelled": "You put the key away."]),
        presentation: .ceremony(button: "Use your key"))
    }

    func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
      .ask([Self.answer], state: [], showing: [Self.shown])
    }

    func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
      try input.text("answer").contains("right") ? .proved(Proof()) : .refused("wrong_key")
    }
  }

  private func gateway() throws -> HTTPGateway {
    try HTTPGateway(providers: [PhoneOTP(), Toy()]) { generation in
      generation.flows["step_up"] = .test("step_up", account: .existing, steps: [.test("phone_otp", "toy")])
      generation.flows["login"] = .test("login", account: .existing, steps: [.test("phone_otp")])
      generation.flows["register"] = .test("register", account: .new, steps: [.test("phone_otp")])
      generation.policies["toy"] = .test(
        "toy",
        limits: [.test("verify", on: .verify, per: .account, max: 3, window: .seconds(86_400), lock: [.seconds(1800)])])
    }
  }

  @Test func thePageHasTheOptionsForItsScript() async throws {
    try await gateway().run { client in
      let browser = try await Browser.owner(client)
      let first = try await browser.visit("/auth/step?flow=step_up&with=toy&return_to=%2Fpay")
      #expect(
        first.text.contains("data-form=\"ceremony\" data-way=\"step\" data-automatic")
          && first.text.contains(">Use your key</button>"))
      #expect(first.text.contains("<noscript>") && !first.text.contains("data-options"))
      let address = try #require(try await browser.submit(["with": "toy"]).header("Location"))
      let page = try await browser.visit(address)
      #expect(
        page.text.contains(
          "data-call=\"get\" data-options=\"{&quot;challenge&quot;:&quot;&lt;AAAA&gt;\\&quot;&amp;&quot;"),
        "\(page.text)")
      #expect(
        page.text.contains("data-cancelled=\"You put the key away.\"")
          && page.text.contains("<input type=\"hidden\" name=\"field.answer\" data-answer>"))
      #expect(page.text.contains("class=\"main unscripted-hidden\""))
      let wrong = try await browser.submit(["field.answer": #"{"id":"wrong"}"#])
      #expect(
        wrong.status == 401 && wrong.text.contains("This key is not yours.") && !wrong.text.contains("data-automatic"))
      #expect(try await browser.submit(["field.answer": #"{"id":"right"}"#]).header("Location") == "/pay")
    }
  }

  @Test func theAPIHasTheOptionsAsAnObjectAndTakesOne() async throws {
    try await gateway().run { client in
      let browser = try await Browser.owner(client)
      let headers = [("Content-Type", "application/json"), ("Origin", "http://localhost:8080")] + browser.cookieHeader
      let made = try await client.send(.post, "/api/auth/flows", headers: headers, body: #"{"flow":"step_up"}"#)
      let id = try #require(made.text.firstMatch(of: /"id":"(fl_[^"]+)"/)?.1)
      let cookies = browser.cookieHeader
      let more = [("Content-Type", "application/json"), ("Origin", "http://localhost:8080")] + cookies
      let begun = try await client.send(
        .post, "/api/auth/flows/\(id)/begin", headers: more, body: #"{"provider":"toy"}"#)
      #expect(
        begun.text.contains(
          #""show":[{"kind":"ceremony","call":"get","options":{"challenge":"<AAAA>\"&","rpId":"localhost"}}]"#),
        "\(begun.text)")
      #expect(begun.text.contains(#"{"name":"answer","kind":"json"}"#))
      let list = try await client.send(
        .post, "/api/auth/flows/\(id)/submit", headers: more, body: #"{"answer":["right"]}"#)
      #expect(list.status == 422)
      let done = try await client.send(
        .post, "/api/auth/flows/\(id)/submit", headers: more,
        body: #"{"answer":{"id":"right","nested":{"a":[1,2.50]}}}"#)
      #expect(done.status == 200 && done.text.contains(#""status":"complete""#), "\(done.text)")
    }
  }
}
