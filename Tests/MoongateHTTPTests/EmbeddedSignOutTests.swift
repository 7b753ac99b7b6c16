import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import PhoneOTP
import Testing

@testable import MoongateHTTP

/// A site whose page signs users out. The code that it returns with is the id of the session there.
private struct Site: FullProvider, SignOutEmbedding {
  static let issuer = "https://site.example/realms/one"

  let name: ProviderName

  var descriptor: ProviderDescriptor {
    ProviderDescriptor(
      name: name, beginFields: [], submitFields: [], settings: [], policy: PolicySource(file: "site.lua", text: ""),
      identifierKinds: [.federated], outcomes: [Outcome(.oauthFailed, "No.")],
      presentation: .externalSite(button: "Continue with the site"),
      callbackFields: [InputField(name: "code", kind: .text, isRequired: false)])
  }

  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    .redirect(to: "https://site.example/?state=\(step.callback?.state ?? "")", state: [])
  }

  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    guard let session = try input.optionalText("code") else { return .refused(.oauthFailed) }
    return .proved(
      Proof(
        proved: [Identifier(kind: .federated, value: "\(name) 1", display: "Asha")],
        siteSession: "\(Self.issuer) \(session)"))
  }

  func embeddedSignOut(issuer: String, session: String, settings: StepSettings) -> EmbeddedSignOut? {
    EmbeddedSignOut(siteSession: "\(issuer) \(session)", origin: "https://site.example")
  }
}

/// Another site's page that embeds an address of the gateway, so that users sign out here as well.
@Suite struct EmbeddedSignOutTests {
  private static let issuer = PercentEncoding.encode(Site.issuer)

  private func run(_ body: @escaping @Sendable (Client) async throws -> Void) async throws {
    let gateway = try HTTPGateway(providers: [PhoneOTP(), Site(name: "work"), Site(name: "other")]) { generation in
      generation.flows["work"] = .test("work", purpose: .signIn, account: .any, steps: [.test("work")])
      generation.flows["other"] = .test("other", purpose: .signIn, account: .any, steps: [.test("other")])
    }
    try await gateway.run(body)
  }

  /// A browser that the site has signed in by one of its sessions.
  private func signedIn(_ client: Client, by session: String, at site: String = "work") async throws -> Browser {
    let browser = Browser(client)
    try await browser.visit("/auth/login?flow=\(site)")
    let page = try await browser.post("/auth/step", ["flow": site, "with": site])
    let state = try #require(
      page.text.components(separatedBy: "?state=").dropFirst().first?.prefix { $0 != "\"" && $0 != "&" })
    #expect(try await browser.visit("/auth/callback/\(site)?state=\(state)&code=\(session)").status == 303)
    #expect(try await isSignedIn(browser))
    return browser
  }

  private func isSignedIn(_ browser: Browser) async throws -> Bool {
    try await !browser.visit("/auth/logout").text.contains("You are not signed in.")
  }

  @Test func pageOfTheSiteEndsTheSessionThatItOpened() async throws {
    try await run { client in
      let browser = try await signedIn(client, by: "s-1")
      let elsewhere = try await signedIn(client, by: "s-1")
      browser.metadata = [("Sec-Fetch-Dest", "iframe")]
      let answer = try await browser.visit("/auth/logout/work?iss=\(Self.issuer)&sid=s-1")
      #expect(answer.status == 200 && answer.text.isEmpty && answer.header("Cache-Control") == "no-store")
      // Only the issuer's page may embed it, and only this empty one.
      #expect(
        answer.header("Content-Security-Policy")
          == "default-src 'none'; base-uri 'none'; frame-ancestors https://site.example")
      #expect(answer.header("X-Frame-Options") == nil && answer.header("Clear-Site-Data") == "\"storage\"")
      #expect(try await browser.visit("/auth/logout").header("X-Frame-Options") == "DENY")
      #expect(try await !isSignedIn(browser))
      #expect(try await isSignedIn(elsewhere), "the one of this browser, and no other")
      let event = try await client.gateway.store.events(limit: 20).first { $0.kind == .sessionEnded }
      #expect(event?.provider == "work" && event?.detail["by"] == "site")
    }
  }

  /// Attack: any page embeds the address, or leads the user to it, with an id that it has guessed or knows from another
  /// user, another issuer or another provider. The answer says nothing about the session.
  @Test func anyOtherAddressEndsNothing() async throws {
    try await run { client in
      let browser = try await signedIn(client, by: "s-1")
      _ = try await signedIn(client, by: "s-2")
      _ = try await signedIn(client, by: "s-1", at: "other")
      for address in [
        "work?iss=\(Self.issuer)&sid=s-2", "work?iss=\(Self.issuer)&sid=s-", "work?iss=https://evil.example&sid=s-1",
        "other?iss=\(Self.issuer)&sid=s-1",
      ] {
        let answer = try await browser.visit("/auth/logout/\(address)")
        #expect(answer.status == 200 && answer.text.isEmpty && answer.setCookies.isEmpty, "\(address)")
        #expect(answer.header("Clear-Site-Data") == nil)
      }
      // Attack: an application of the user's that knows the id leads the user there.
      browser.metadata = [("Sec-Fetch-Dest", "document")]
      #expect(try await browser.visit("/auth/logout/work?iss=\(Self.issuer)&sid=s-1").setCookies.isEmpty)
      let stranger = try await Browser(client).visit("/auth/logout/work?iss=\(Self.issuer)&sid=s-1")
      #expect(stranger.status == 200 && stranger.setCookies.isEmpty)
      #expect(try await isSignedIn(browser))
    }
  }

  /// Attack: an address without an id signs out whoever opens it; a session of another kind than the site's.
  @Test func addressMustNameASessionOfASite() async throws {
    try await run { client in
      let browser = try await Browser.owner(client)
      for query in ["", "?iss=\(Self.issuer)", "?sid=s-1", "?iss=&sid=", "?iss=a&sid=b&sid=c"] {
        #expect(try await browser.visit("/auth/logout/work\(query)").status == 400, "\(query)")
      }
      for name in ["phone_otp", "nobody", "%2e%2e"] {
        #expect(try await browser.visit("/auth/logout/\(name)?iss=a&sid=b").status == 404, "\(name)")
      }
      #expect(try await browser.post("/auth/logout/work?iss=a&sid=b", [:]).status == 405)
      #expect(try await browser.visit("/auth/logout/work?iss=\(Self.issuer)&sid=s-1").status == 200)
      #expect(try await isSignedIn(browser))
    }
  }
}
