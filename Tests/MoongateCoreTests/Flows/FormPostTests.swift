import Foundation
import MoongateSDK
import MoongateStore
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateCore

/// A federated site that returns by POST (OAuth 2.0 Form Post Response Mode). The POST carries no cookies: it is kept
/// until the same browser fetches it.
@Suite struct FormPostTests {
  private static let toy: ProviderName = "toy"

  private struct Site {
    let bench: EngineTestBench
    let browser: ClientContext
    let id: FlowID
    let state: String
  }

  /// A flow of a browser that has been sent to the site.
  private func site(_ change: (inout Scripted) -> Void = { _ in }) async throws -> Site {
    let state = Mutex("")
    var provider = Scripted(
      outcomes: [Outcome(.oauthFailed, "No.")], identifierKinds: [.federated],
      callbackFields: [
        InputField(name: "code", kind: .text, isRequired: false),
        InputField(name: "user", kind: .text, isRequired: false),
        InputField(name: "pin", kind: .digits, length: 4, isRequired: false),
      ],
      begins: { step in
        state.withLock { $0 = step.callback?.state ?? "" }
        return .redirect(to: "https://site.example/", state: [])
      })
    change(&provider)
    let bench = try await EngineTestBench(others: [provider], sharesFlows: true) { generation in
      generation.flows["site"] = .test("site", purpose: .signIn, account: .any, steps: [.test(Self.toy)])
    }
    let browser = bench.client(browser: TokenHash(of: "mine".utf8), at: .page)
    let id = try await bench.engine.create("site", returnTo: nil, browser: browser.browser, client: browser).get().id
    _ = try await bench.engine.begin(id, provider: "toy", fields: [:], client: browser).get()
    return Site(bench: bench, browser: browser, id: id, state: state.withLock { $0 })
  }

  /// The site's POST; none of our cookies come with it.
  private func post(_ site: Site, _ fields: [String: String] = ["code": "grant"], state: String? = nil) async -> Result<
    SecretText, Refusal
  > {
    await site.bench.engine.hold(
      fields.mapValues { .text($0) }, ofCallback: state ?? site.state, provider: Self.toy,
      client: site.bench.client(at: .page))
  }

  private func come(_ site: Site, with handle: String, as client: ClientContext? = nil) async -> Result<
    CallbackFlow, Refusal
  > {
    await site.bench.engine.flow(
      ofCallback: site.state, provider: Self.toy, returned: handle, client: client ?? site.browser)
  }

  @Test func postedFieldsAreConsumedOnceByTheSameBrowser() async throws {
    let site = try await site()
    let handle = try await post(site, ["code": "grant", "user": "{\"name\":\"Asha\"}", "is_admin": "1"]).get().reveal()
    let called = try await come(site, with: handle).get()
    #expect(
      called.id == site.id && called.returned == ["code": .text("grant"), "user": .text("{\"name\":\"Asha\"}")],
      "undeclared ones are dropped")
    // Attack: the URL is replayed from the browser's history.
    #expect(await come(site, with: handle).refusal?.code == .stepNotOpen)
  }

  /// Attack: two requests have both read the posted fields before either consumes them.
  @Test func concurrentReturnsConsumePostedFieldsOnce() async throws {
    let site = try await site()
    let handle = try await post(site).get().reveal()
    let engine = site.bench.racingEngine()
    let (state, browser) = (site.state, site.browser)
    async let first = engine.flow(ofCallback: state, provider: Self.toy, returned: handle, client: browser)
    async let second = engine.flow(ofCallback: state, provider: Self.toy, returned: handle, client: browser)
    let came = await [first, second]
    #expect(came.compactMap(\.refusal?.code) == [.stepNotOpen])
    #expect(came.compactMap { try? $0.get().returned } == [["code": .text("grant")]])
  }

  @Test func fieldsAreValidatedAsAskedOnesAre() async throws {
    let site = try await site()
    #expect(await post(site, ["pin": "12a4"]).refusal?.field == "pin")
    #expect(await post(site, ["code": String(repeating: "x", count: 16_385)]).refusal?.code == .invalidInput)
  }

  /// Attack: a state that is invented, truncated, for another provider, or of a flow that is over.
  @Test func forgedStateFindsNothing() async throws {
    let site = try await site()
    for forged in ["", "x", String(site.state.dropLast(4)), String(repeating: "A", count: 2_000)] {
      #expect(await post(site, state: forged).refusal?.code == .flowNotFound)
    }
    let other = await site.bench.engine.hold(
      ["code": .text("x")], ofCallback: site.state, provider: EngineTestBench.phone, client: site.bench.client())
    #expect(other.refusal?.code == .flowNotFound)
    site.bench.clock.advance(by: .seconds(900))
    #expect(await post(site).refusal?.code == .stepNotOpen)
  }

  /// Attack: the attacker's own grant and state are posted in the victim's browser, to sign the victim in as the
  /// attacker.
  @Test func stateOfAnotherBrowserIsRefused() async throws {
    let attackers = try await site()
    let handle = try await post(attackers).get().reveal()
    for victim in [TokenHash(of: "victim".utf8), nil] {
      let client = attackers.bench.client(browser: victim, at: .page)
      #expect(await come(attackers, with: handle, as: client).refusal?.code == .flowNotFound)
    }
    #expect(await come(attackers, with: handle).refusal == nil, "it is still there for the browser whose flow it is")
  }

  /// Attack: an attacker who has learned the victim's state posts a grant of their own and waits for the victim's
  /// browser to pick it up.
  @Test func postedFieldsRequireTheHandle() async throws {
    let site = try await site()
    let own = try await post(site, ["code": "victims"]).get().reveal()
    let called = try await come(site, with: own).get()
    #expect(called.returned == ["code": .text("victims")])
    _ = try await post(site, ["code": "attackers"]).get()
    #expect(await come(site, with: own).refusal?.code == .stepNotOpen)
    #expect(await come(site, with: "guessed").refusal?.code == .stepNotOpen)
    #expect(
      try await site.bench.engine.flow(ofCallback: site.state, provider: Self.toy, client: site.browser).get().returned
        == nil)
  }

  @Test func postedFieldsExpire() async throws {
    let site = try await site()
    let handle = try await post(site).get().reveal()
    site.bench.clock.advance(by: .seconds(120))
    #expect(await come(site, with: handle).refusal?.code == .stepNotOpen)
  }

  /// Attack: a POST to a provider that has not redirected a user.
  @Test func stepWithoutASiteAcceptsNoPost() async throws {
    let state = Mutex("")
    let site = try await site { provider in
      provider.begins = { step in
        state.withLock { $0 = step.callback?.state ?? "" }
        return .ask([InputField(name: "code", kind: .text)], state: [])
      }
    }
    #expect(await post(site, state: state.withLock { $0 }).refusal?.code == .stepNotOpen)
  }

  @Test func postedFieldsAreSealedInTheStore() async throws {
    let site = try await site()
    let handle = try await post(site, ["code": "planted-grant"]).get().reveal()
    let record = try #require(try await site.bench.store.flow(site.id.hash))
    let stored = String(decoding: try JSONEncoder().encode(record), as: UTF8.self)
    #expect(record.step?.returned != nil && !stored.contains("planted") && !stored.contains(handle))
  }

  @Test func requiredCallbackFieldIsDemanded() async throws {
    let site = try await site { $0.callbackFields = [InputField(name: "code", kind: .text)] }
    let refusal = try #require(
      await site.bench.engine.submit(site.id, fields: ["state": .text("x")], client: site.browser).refusal)
    #expect(refusal.code == .invalidInput && refusal.field == "code")
  }
}
