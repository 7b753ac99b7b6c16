import Foundation
import HTTPTypes
import MoongateCore
import MoongateHTTP
import MoongateSDK
import MoongateTesting
import Password
import PhoneOTP
import Synchronization
import Testing

/// A third party's codes to phone numbers; the sign-in page offers it as a link.
private final class Pager: CodeProvider {
  let sent = Mutex<[(to: String, code: String)]>([])
  private let reader = PhoneOTP()

  var descriptor: ProviderDescriptor {
    ProviderDescriptor(
      name: "pager", beginFields: reader.descriptor.beginFields, submitFields: reader.descriptor.submitFields,
      settings: [],
      policy: PolicySource(file: "toy.lua", text: ""), identifierKinds: [.phone],
      words: StepWords(title: "Pager", labels: ["phone": "Pager number"]))
  }

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier { try reader.readIdentifier(input) }

  func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault) {
    sent.withLock { $0.append((identifier.value, code.code)) }
  }
}

/// A third party's site with a button on the sign-in page.
private struct Club: FullProvider {
  let descriptor = ProviderDescriptor(
    name: "club", beginFields: [], submitFields: [InputField(name: "error", kind: .text, isRequired: false)],
    settings: [],
    policy: PolicySource(file: "club.lua", text: ""), identifierKinds: [.federated],
    outcomes: [
      Outcome(.oauthFailed, "It failed."), Outcome("no_member", "You are not a member of the club.", isFailure: false),
    ],
    words: StepWords(title: "Club", translations: ["hi": ["You are not a member of the club.": "आप क्लब के सदस्य नहीं हैं।"]]),
    presentation: .externalSite(button: "Continue with the club"),
    entrance: .button(label: "Continue with the club", icon: nil, priority: 1),
    callbackFields: ["error", "state"].map { InputField(name: $0, kind: .text, isRequired: false) })

  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    .redirect(to: "https://club.test/?state=\(step.callback?.state ?? "")", state: [1])
  }

  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    .refused(try input.optionalText("error").flatMap(RefusalReason.init(rawValue:)) ?? .oauthFailed)
  }
}

/// Custom flows, named by a route, with providers that the sign-in page does not begin by itself.
@Suite struct OwnFlowTests {
  private func gateway(_ pager: Pager) throws -> HTTPGateway {
    try HTTPGateway(providers: [PhoneOTP(), pager]) { generation in
      generation.flows["login"] = .test("login", account: .existing, steps: [.test("phone_otp")])
      generation.flows["guests"] = .test("guests", account: .any, steps: [.test("pager")])
    }
  }

  /// The page for a code that the pager has sent.
  private func codePage(_ browser: Browser) async throws -> Answer {
    try await browser.visit("/auth/step?flow=guests&return_to=%2Fguests")
    let begun = try await browser.submit(["field.phone": "9999999999"])
    return try await browser.visit(try #require(begun.header("Location")))
  }

  /// The site by which this device has signed in last comes before the form.
  @Test func theLastUsedSiteComesFirst() async throws {
    let gateway = try HTTPGateway(providers: [PhoneOTP(), Club()]) { generation in
      generation.flows["login"] = .test("login", account: .existing, steps: [.test("phone_otp", "club")])
    }
    try await gateway.run { client in
      for (cookie, isFirst) in [("moongate-way=club", true), ("moongate-way=phone_otp", false), ("a=b", false)] {
        let page = try await client.send(.get, "/auth/login", headers: [("Accept", "text/html"), ("Cookie", cookie)])
        let button = try #require(page.text.range(of: "Continue with the club"))
        let field = try #require(page.text.range(of: "id=\"phone\""))
        #expect((button.lowerBound < field.lowerBound) == isFirst)
        #expect(page.text.components(separatedBy: "Continue with the club").count == 2)
        #expect(page.text.contains("Last used") == (cookie != "a=b"))
      }
    }
  }

  @Test func editContinuesWithTheSameProviderAndFlow() async throws {
    let pager = Pager()
    try await gateway(pager).run { client in
      let browser = Browser(client)
      let page = try await codePage(browser)
      #expect(
        browser.address.hasPrefix("/auth/step/pager?id=fl_")
          && pager.sent.withLock { $0.map(\.to) } == ["+919999999999"])
      let link = try #require(
        page.text.components(separatedBy: "data-edit ").dropFirst().first.flatMap { Browser.attribute("href", $0) })
      let form = try await browser.visit(link)
      #expect(
        form.text.contains("value=\"+91 99999 99999\"") && form.text.contains("name=\"flow\" value=\"guests\""),
        "\(form.text)")
      let sent = try await browser.submit(["phone": "8888888888"])
      #expect(sent.header("Location")?.hasPrefix("/auth/step/pager?id=fl_") == true, "\(sent.text)")
      #expect(pager.sent.withLock { $0.last?.to } == "+918888888888" && client.gateway.sent == 0)
      try await browser.visit(try #require(sent.header("Location")))
      let done = try await browser.submit(["code": try #require(pager.sent.withLock { $0.last?.code })])
      #expect(done.status == 303 && browser.cookies["moongate"] != nil)
    }
  }

  /// The same in the sign-in page's default flow, whose field belongs to another provider.
  @Test func editContinuesWithTheChosenProvider() async throws {
    let pager = Pager()
    let gateway = try HTTPGateway(providers: [PhoneOTP(), pager]) { generation in
      generation.flows["login"] = .test("login", account: .any, steps: [.test("phone_otp", "pager")])
    }
    try await gateway.run { client in
      let browser = Browser(client)
      try await browser.visit("/auth/step?flow=login&with=pager")
      let begun = try await browser.submit(["field.phone": "9999999999"])
      let page = try await browser.visit(try #require(begun.header("Location")))
      #expect(pager.sent.withLock { $0.map(\.to) } == ["+919999999999"], "\(page.text)")
      try await browser.visit(
        try #require(
          page.text.components(separatedBy: "data-edit ").dropFirst().first.flatMap { Browser.attribute("href", $0) }))
      let sent = try await browser.submit(["phone": "8888888888"])
      #expect(sent.header("Location")?.hasPrefix("/auth/step/pager?id=fl_") == true, "\(sent.text)")
      #expect(pager.sent.withLock { $0.last?.to } == "+918888888888" && client.gateway.sent == 0)
    }
  }

  /// The edit sheet that scripts open over the code page, also when the flow has expired in the meantime.
  @Test(arguments: [true, false]) func sheetContinuesWithTheSameProviderAndFlow(isAlive: Bool) async throws {
    let pager = Pager()
    try await gateway(pager).run { client in
      let browser = Browser(client)
      let page = try await codePage(browser)
      let sheet = try #require(
        page.text.components(separatedBy: "data-form=\"edit\"").dropFirst().first?.components(separatedBy: "</form>")
          .first)
      var fields = ["phone": "8888888888"]
      for input in sheet.components(separatedBy: "<input ").dropFirst() where input.contains("type=\"hidden\"") {
        fields[try #require(Browser.attribute("name", input))] = Browser.attribute("value", input)
      }
      if !isAlive { client.gateway.clock.advance(by: .seconds(7200)) }
      let sent = try await browser.post("/auth/login", fields)
      #expect(sent.header("Location")?.hasPrefix("/auth/step/pager?id=fl_") == true, "\(sent.status) \(sent.text)")
      #expect(pager.sent.withLock { $0.last?.to } == "+918888888888" && client.gateway.sent == 0)
    }
  }

  private static let refusals = [
    ("no_member", "no_member", "You are not a member of the club.", "आप क्लब के सदस्य नहीं हैं।"),
    ("oauth_failed", "oauth_failed", "It failed.", nil), ("undeclared", "oauth_failed", "It failed.", nil),
  ]

  /// A refusal by the site is shown in the site's own words, and the flow can be begun again.
  @Test(arguments: refusals, ["guests", "login"])
  func refusalOfTheSiteReturnsToItsFlow(
    _ told: (error: String, name: String, english: String, hindi: String?), _ flow: String
  ) async throws {
    let gateway = try HTTPGateway(providers: [PhoneOTP(), Club()]) { generation in
      generation.flows["login"] = .test("login", account: .existing, steps: [.test("phone_otp", "club")])
      generation.flows["guests"] = .test("guests", account: .any, steps: [.test("phone_otp", "club")])
      generation.policies["club"] = .test("club", limits: [])
    }
    try await gateway.run { client in
      let browser = Browser(client)
      try await browser.visit("/auth/login?return_to=%2Fguests" + (flow == "guests" ? "&flow=guests" : ""))
      let away = try await browser.submit(["provider": "club"])
      let state = try #require(away.text.firstMatch(of: /club\.test\/\?state=([A-Za-z0-9_-]+)/)?.1, "\(away.text)")
      let back = try await browser.visit("/auth/callback/club?state=\(state)&error=\(told.error)")
      let address = flow == "guests" ? "/auth/login?flow=guests&refused=" : "/auth/login?refused="
      #expect(back.header("Location") == address + told.name + "&return_to=%2Fguests")
      let page = try await browser.visit(try #require(back.header("Location")))
      #expect(page.text.contains(told.english) && page.text.contains("Continue with the club"), "\(page.text)")
      #expect(page.text.contains("name=\"flow\" value=\"guests\"") == (flow == "guests"))
      if let hindi = told.hindi { #expect(try await browser.turns(to: "hi", [:]).text.contains(hindi)) }
    }
  }

  /// Attack: a link makes the sign-in page show the attacker's text.
  @Test(arguments: ["send_money_to_x", "busy", "no_member&by=phone_otp"]) func linkCannotInsertTextIntoThePage(
    _ refused: String
  ) async throws {
    try await HTTPGateway(providers: [PhoneOTP(), Club()]).run { client in
      let page = try await Browser(client).visit("/auth/login?refused=\(refused)")
      #expect(
        page.status == 200 && !page.text.contains("class=\"problem") && !page.text.contains("send_money"),
        "\(page.text)")
    }
  }

  @Test func lockedPasswordOfAStepUpShowsACountdown() async throws {
    let gateway = try HTTPGateway(providers: [PhoneOTP(), Password()]) { generation in
      generation.flows["step_up"] = .test("step_up", account: .existing, steps: [.test("password")])
      generation.flows["password_set"] = .test(
        "password_set", purpose: .factor("password", .set), account: .existing, steps: [.test("password")])
      generation.policies["password"] = .test(
        "password",
        limits: [.test("verify", on: .verify, per: .account, max: 2, window: .seconds(86_400), lock: [.seconds(900)])])
    }
    try await gateway.run { client in
      let browser = try await Browser.owner(client)
      let made = try await browser.call("/api/auth/flows", #"{"flow":"password_set"}"#)
      let id = try #require(made["id"] as? String)
      let set = try await browser.call(
        "/api/auth/flows/\(id)/begin", #"{"provider":"password","password":"quiet pigeons at nine"}"#)
      #expect(set["status"] as? String == "complete", "\(set.text)")
      client.gateway.clock.advance(by: .seconds(1000))
      try await browser.visit("/auth/login?flow=step_up")
      #expect(try await browser.submit(["password": "loud pigeons at nine"]).text.contains("data-countdown") == false)
      let locked = try await browser.submit(["password": "loud pigeons at nine"])
      #expect(
        locked.status == 429 && locked.text.contains("data-countdown=\"900000\"")
          && locked.text.contains(">15:00</span>"), "\(locked.text)")
    }
  }
}
