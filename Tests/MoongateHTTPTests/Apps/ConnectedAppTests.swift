import Foundation
import HTTPTypes
import MoongateCore
import MoongateHTTP
import MoongateSDK
import MoongateTesting
import Testing

/// The apps that an account has signed in to: on its page, in the API and in its export.
@Suite struct ConnectedAppTests {
  private func gateway(_ name: String = "Notes") throws -> HTTPGateway {
    let app = try App.asking(name)
    return try HTTPGateway { $0.apps = AppTable([app], own: nil) }
  }

  /// Connects apps to an account.
  /// - Parameter account: nil: the only one.
  private func connect(_ apps: [String], to account: String? = nil, _ client: Client) async throws {
    let store = client.gateway.store
    let first = try await store.accounts(after: nil, limit: 9).first?.id
    let now = client.gateway.clock.now()
    let changes = try apps.map { app in
      Change.putAppConnection(
        AppConnection(
          account: try #require(account ?? first), app: app, scopes: ["openid", "email"], createdAt: now, usedAt: now,
          agreed: true))
    }
    #expect(try await store.apply(changes, at: now) != .conflict(.accountUnavailable))
  }

  @Test func thePageListsAndDisconnectsThem() async throws {
    try await gateway("<b>Notes</b>").run { client in
      let browser = try await Browser.owner(client)
      #expect(!(try await browser.visit("/auth/account").text.contains("Connected apps")))
      try await connect(["notes", "removed"], client)
      let page = try await browser.visit("/auth/account")
      // Attack: HTML in the name of an app.
      #expect(page.text.contains("&lt;b&gt;Notes&lt;/b&gt;") && !page.text.contains("<b>Notes"))
      for text in [
        "<h2 id=\"apps-group\">Connected apps</h2>", "See your email address", "<bdi>removed</bdi>",
        "aria-label=\"Disconnect: removed\"", "datetime=",
      ] { #expect(page.text.contains(text), "\(text)") }
      let question = try await browser.visit("/auth/account/apps?app=notes")
      #expect(question.status == 200 && question.text.contains("Disconnect &lt;b&gt;Notes&lt;/b&gt;?"))
      #expect(try await browser.submit(["action": "cancel"]).header("Location") == "/auth/account")
      #expect(try await browser.visit("/auth/account").text.contains("&lt;b&gt;Notes&lt;/b&gt;"))
      try await browser.visit("/auth/account/apps?app=notes")
      let done = try await browser.submit(["action": "disconnect"])
      #expect(done.header("Location") == "/auth/account?done=app_disconnected")
      let after = try await browser.visit("/auth/account?done=app_disconnected")
      #expect(after.text.contains("App disconnected.") && !after.text.contains("Notes"))
      // In another tab.
      #expect(try await browser.visit("/auth/account/apps?app=notes").header("Location") == "/auth/account?done=gone")
      let again = try await browser.post("/auth/account/apps?app=notes", ["action": "disconnect"])
      #expect(again.header("Location") == "/auth/account?done=gone")
      let stranger = try await Browser(client).visit("/auth/account/apps?app=notes")
      #expect(stranger.header("Location") == "/auth/login?return_to=%2Fauth%2Faccount")
    }
  }

  @Test func theAPIListsExportsAndDisconnectsThem() async throws {
    try await gateway().run { client in
      let (token, _) = try await client.register()
      let bearer = [("Authorization", "Bearer \(token)")]
      try await connect(["notes"], client)
      let listed = try await client.call(.get, "/api/auth/apps", headers: bearer)
      #expect(listed.text.contains(#""app":"notes","scopes":["openid","email"]"#), "\(listed.text)")
      let export = try await client.call(.get, "/api/auth/account/export", headers: bearer)
      #expect((export["apps"] as? [[String: Any]])?.first?["app"] as? String == "notes", "\(export.text)")
      #expect(try await client.call(.delete, "/api/auth/apps/other", headers: bearer).problem() == "not_found")
      #expect(try await client.call(.delete, "/api/auth/apps/notes", headers: bearer).status == 204)
      #expect(try await client.call(.get, "/api/auth/apps", headers: bearer).text == "[]\n")
      #expect(try await client.call(.delete, "/api/auth/apps/notes").problem() == "unauthenticated")
      let events = try await client.gateway.store.events(matching: AuditFilter(kinds: [.appRevoked]), limit: 9)
      #expect(events.map { $0.detail["app"] } == ["notes"])
    }
  }

  /// Attack: a user disconnects the app of another account, or a page of another site disconnects the user's.
  @Test func onlyTheOwnerDisconnects() async throws {
    try await gateway().run { client in
      let owner = try await Browser.owner(client)
      try await connect(["notes"], client)
      let (token, _) = try await client.register("+919999999998")
      let bearer = [("Authorization", "Bearer \(token)")]
      #expect(try await client.call(.delete, "/api/auth/apps/notes", headers: bearer).problem() == "not_found")
      let foreign = try await client.send(
        .post, "/auth/account/apps?app=notes",
        headers: owner.cookieHeader + [
          ("Origin", "https://evil.example"), ("Content-Type", "application/x-www-form-urlencoded"),
        ], body: "action=disconnect")
      #expect(foreign.status == 403 && foreign.problem() == "origin_refused")
      #expect(try await owner.visit("/auth/account").text.contains("Notes"))
    }
  }
}
