import Crypto
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateCore

extension Grant {
  static let testVerifier = String(repeating: "v", count: 43)
  static let testRedirect = "https://app.example.com/back?x=1"

  /// A grant of the app `mobile` whose verifier is `testVerifier`.
  static func test(client: String = "mobile", redirect: String = testRedirect) throws -> Grant {
    try #require(
      Grant(
        client: client, redirect: redirect,
        challenge: Base64URL.encode(SHA256.hash(data: Array(testVerifier.utf8)))))
  }
}

extension AppTable {
  /// The app `mobile`, which redirects to `Grant.testRedirect`.
  static func test(_ consent: App.Consent = .never, redirects: [String] = [Grant.testRedirect]) -> AppTable {
    let uris = redirects.compactMap { try? RedirectURI($0) }
    return AppTable([App(id: "mobile", name: "Mobile", redirectURIs: uris, consent: consent)], own: nil)
  }
}

extension EngineTestBench {
  /// Creates a flow whose result an app receives, by the API.
  func createdForApp(_ flow: String) async throws -> FlowID {
    try await engine.create(flow, returnTo: nil, browser: nil, grant: try .test(), client: client()).get().id
  }

  /// Creates a flow whose result an app receives, and opens it in a browser.
  func openedForApp(_ flow: String, in page: ClientContext) async throws -> FlowID {
    let id = try await createdForApp(flow)
    #expect(try await engine.view(id, client: page).get().status == .pending)
    return id
  }

  /// Completes a flow by phone in a browser.
  /// - Returns: the completed flow, as the browser sees it, and the app's code.
  func completedForApp(in page: ClientContext, phone: String = "911111") async throws -> (FlowView, code: String) {
    let id = try await openedForApp("enter", in: page)
    _ = try await engine.begin(id, provider: "phone_otp", fields: ["phone": .text(phone)], client: page).get()
    let view = try await engine.submit(id, fields: ["code": .text(code)], client: page).get()
    let next = try #require(view.next)
    #expect(next.hasPrefix(Grant.testRedirect + "&code="))
    return (view, String(next.dropFirst(Grant.testRedirect.count + "&code=".count)))
  }

  /// Redeems the code of a completed flow.
  func redeem(
    _ id: FlowID, _ code: String, _ verifier: String = Grant.testVerifier, browser: TokenHash? = nil
  ) async -> Result<FlowView, Refusal> {
    await engine.submit(
      id, fields: ["code": .text(code), "code_verifier": .text(verifier)], client: client(browser: browser))
  }

  /// Activates other apps.
  func activate(_ apps: AppTable) throws {
    var generation = try #require(generations.current as? TestGeneration)
    generation.id += "+"
    generation.apps = apps
    generations.activate(generation, at: clock.now())
  }
}
