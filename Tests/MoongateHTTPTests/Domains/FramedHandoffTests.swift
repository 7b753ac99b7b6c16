import HTTPTypes
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateHTTP

/// A service on a further root domain in a frame of another site, where browsers keep only partitioned cookies.
@Suite struct FramedHandoffTests {
  private static let opened = [
    ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "iframe"),
  ]

  private func frameApp(_ generation: inout TestGeneration) {
    generation.routes = RouteTable(
      routes: DomainWorld.routes.map { route in
        var route = route
        if route.host == "app.example.org" { route.frames = ["https://portal.example.com"] }
        return route
      })
  }

  private func kept(_ answer: Answer, by browser: DomainBrowser) -> Answer {
    browser.cookies.removeAll { !$0.name.hasSuffix("-framed") }
    return answer
  }

  @Test func signInReachesTheFrameOfAnotherDomain() async throws {
    try await DomainWorld.run(change: frameApp) { client in
      let browser = DomainBrowser(client)
      func open(_ address: String) async throws -> Answer {
        kept(try await browser.send(.get, address, Self.opened), by: browser)
      }
      let begun = try #require(try await open("\(DomainWorld.app)/auth/handoff?return_to=%2Fx").header("Location"))
      #expect(browser.value("__Host-moongate-flow-framed", "app.example.org") != nil)
      let signIn = try #require(try await open(begun).header("Location"))
      let page = try await open(DomainWorld.home + signIn)
      #expect(page.header("Content-Security-Policy")?.hasSuffix("frame-ancestors https://portal.example.com") ?? false)
      let query = try #require(FormFields(signIn.utf8.drop { $0 != UInt8(ascii: "?") }.dropFirst()))
      let returnTo = try #require(query["return_to"])
      let sent = try await browser.post(
        "\(DomainWorld.home)/auth/register", ["phone": "9999999999", "return_to": returnTo])
      let code = try #require(client.gateway.code(for: "+919999999999"))
      let verify = DomainWorld.home + (try #require(kept(sent, by: browser).header("Location")))
      let done = kept(try await browser.post(verify, ["code": code]), by: browser)
      #expect(done.header("Location") == returnTo, "\(done.text)")
      #expect(browser.value("__Secure-moongate-framed", ".example.com") != nil)
      let issued = try #require(try await open(DomainWorld.home + returnTo).header("Location"))
      #expect(issued.hasPrefix("\(DomainWorld.app)/auth/handoff?code="))
      #expect(try await open(issued).header("Location") == "\(DomainWorld.app)/x")
      #expect(browser.value("__Secure-moongate-framed", ".example.org") != nil)
    }
  }

  /// Attack: login CSRF. The embedding site leads the frame to a code of the attacker's sign-in.
  @Test func attackersCodeIsRefusedInAFrame() async throws {
    try await DomainWorld.run(change: frameApp) { client in
      let attacker = try await DomainBrowser.owner(client, "+919999999991")
      let code = try await attacker.fetchCode()
      let browser = DomainBrowser(client)
      _ = kept(
        try await browser.send(.get, "\(DomainWorld.app)/auth/handoff?return_to=%2Fx", Self.opened), by: browser)
      let refused = kept(try await browser.send(.get, code, Self.opened), by: browser)
      #expect(refused.status == 403)
      #expect(browser.value("__Secure-moongate-framed", ".example.org") == nil)
    }
  }
}
