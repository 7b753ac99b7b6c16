import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import Logging
import MoongateCore
import MoongateDelivery
import MoongateHTTP
import MoongateSDK
import MoongateStore
import MoongateTesting
import NIOCore
import NIOEmbedded
import PhoneOTP
import Testing

extension ApplicationRequestContextSource {
  /// A context without a connection.
  static func testing(_ gateway: TestGateway) -> Self { Self(channel: EmbeddedChannel(), logger: gateway.log.logger) }
}

/// The environment of the calls: timeouts, a failing store, the client's address, and secrets in the log.
@Suite struct WireTests {
  @Test func stalledBodyTimesOut() async throws {
    let http = try HTTPGateway(timeLimit: .milliseconds(20))
    let (body, source) = RequestBody.makeStream()
    await source.yield(ByteBuffer(string: #"{"flow":"#))
    let head = HTTPRequest(
      method: .post, scheme: "http", authority: "localhost", path: "/api/auth/flows",
      headerFields: [.contentType: "application/json"])
    let response = try await http.application.responder.respond(
      to: Request(head: head, body: body), context: ConnectionContext(source: .testing(http.gateway)))
    #expect(response.status.code == 408)
    #expect(response.headers[.connection] == "close")
    source.finish()
  }

  /// Bodies on the public listener arrive complete. They are read without a timer, and their size stays limited.
  @Test func completeBodyIsReadWithoutTimeLimit() async throws {
    try await HTTPGateway(timeLimit: nil).run { client in
      let created = try await client.call(.post, "/api/auth/flows", #"{"flow":"login"}"#)
      #expect(created.status == 201)
      let long = #"{"flow":""# + String(repeating: "x", count: 65_536) + #""}"#
      let refused = try await client.call(.post, "/api/auth/flows", long)
      #expect(refused.status == 413)
    }
  }

  @Test func unavailableStoreAnswers503() async throws {
    let store = try SQLiteStore.memory()
    let http = try HTTPGateway(store: store)
    try await http.run { client in
      let token = try await client.register().token
      client.gateway.clock.advance(by: .seconds(900))
      let id = try await client.begin()
      try store.close()
      let bearer = [("Authorization", "Bearer \(token)")]
      for answer in [
        try await client.call(.get, "/api/auth/session", headers: bearer),
        try await client.call(.delete, "/api/auth/session", headers: bearer),
        try await client.call(.get, "/api/auth/flows/\(id)"),
        try await client.call(.post, "/api/auth/flows/\(id)/submit", #"{"code":"123456"}"#),
      ] {
        #expect(answer.status == 503)
        #expect(answer.problem() == "store_unavailable")
        #expect(answer.detail == "Sign-in is not available at the moment. Please try again.")
      }
      let page = try await client.send(
        .get, "/auth/account", headers: [("Cookie", "moongate=\(token)"), ("Accept", "text/html")])
      #expect(page.status == 503)
      #expect(page.text.contains("Sign-in is not available at the moment."))
      // Pages without a session do not need the store, and the stylesheet is always available.
      #expect(try await client.send(.get, "/auth/login").status == 200)
    }
  }

  @Test func clientAddressComesFromTrustedProxies() async throws {
    var settings = GatewaySettings.test()
    settings.trustedProxies = [AddressBlock(network: [0, 0, 0, 0], prefix: 32)]
    let http = try HTTPGateway(settings: settings)
    try await http.run { client in
      let answer = try await client.call(.get, "/api/auth/session", headers: [("X-Forwarded-For", "6.6.6.6, 9.9.9.9")])
      let id = try #require(answer["decision_id"] as? String)
      #expect(try await client.gateway.audit.event(DecisionID(text: id))?.address == "9.9.9.9")
    }
  }

  @Test func noSecretIsInAnyLogOrEvent() async throws {
    let http = try HTTPGateway()
    try await http.run { client in
      let gateway = client.gateway
      let browser = Browser(client)
      try await browser.visit("/auth/register?return_to=/pay")
      let sent = try await browser.submit(["phone": "9999999999"])
      let address = try #require(sent.header("Location"))
      let first = try #require(gateway.code(for: "+919999999999"))
      let wrong = ["739164", "739165", "739166"].first { $0 != first } ?? ""
      try await browser.visit(address)
      try await browser.submit(["code": wrong])
      try await browser.submit(["code": first])
      let token = try #require(browser.cookies["moongate"])
      gateway.clock.advance(by: .seconds(900))
      let id = try await client.begin()
      let code = try #require(gateway.code(for: "+919999999999"))
      _ = try await client.call(
        .post, "/api/auth/flows/\(id)/submit?code=\(code)&x=querysecret", #"{"code":"\#(wrong)"}"#)
      _ = try await client.call(
        .post, "/api/auth/flows/\(id)/submit", #"{"code":"\#(code)","password":"hunter2hunter2"}"#)
      _ = try await client.call(.get, "/api/auth/flows/\(id)x")
      _ = try await client.call(
        .get, "/api/auth/nothing?phone=9999999999&x=querysecret", headers: [("Cookie", "moongate=\(token)")])
      _ = try await client.call(.post, "/api/auth/flows/\(id)/begin", #"{"phone":"hello 8888888888"}"#)
      try await browser.post("/auth/logout", [:])
      var secrets = [
        first, code, wrong, token, id, "querysecret", "hunter2", "9999999999", "99999 99999", "8888888888",
      ]
      secrets += browser.cookies.values + [String(address.dropFirst("/auth/verify?id=".count))]
      let events = try await gateway.audit.events(limit: 1000)
      #expect(events.count > 8)
      #expect(!gateway.log.lines.isEmpty)
      let written = gateway.log.lines + events.map { String(describing: $0) }
      for secret in secrets { #expect(written.filter { $0.contains(secret) } == [], "\(secret)") }
    }
  }

  @Test func oneLineForEachRefusal() async throws {
    try await HTTPGateway().run { client in
      let answer = try await client.call(.get, "/api/auth/nothing?x=1")
      let id = try #require(answer["decision_id"] as? String)
      #expect(client.gateway.log.lines == ["debug refused code=not_found decision=\(id) method=GET"])
      // Pages that render a refusal themselves log it too.
      let browser = Browser(client)
      try await browser.visit("/auth/login")
      try await browser.submit(["phone": "9999999999"])
      #expect(client.gateway.log.lines.last?.hasPrefix("debug refused code=account_not_found decision=dc_") == true)
    }
  }
}

/// The stylesheet's colours, light and dark: every pair used for text has a contrast of at least 4.5:1.
@Suite struct ContrastTests {
  @Test(arguments: [
    ("text", "background"), ("text-quiet", "background"), ("link", "background"), ("error", "error-field"),
    ("error", "background"),
    ("success", "success-field"),
    ("on-primary", "primary"), ("on-disabled", "disabled"), ("text", "surface"), ("text", "error-field"),
    ("text", "tint"),
    ("text-quiet", "raised"),
  ])
  func everyPair(_ front: String, _ back: String) async throws {
    try await HTTPGateway().run { client in
      let page = try await client.send(.get, "/auth/login")
      let path = try #require(page.text.components(separatedBy: "stylesheet\" href=\"").last?.prefix { $0 != "\"" })
      let palettes = try await client.send(.get, String(path)).text.components(separatedBy: ":root {").dropFirst()
      #expect(palettes.count == 2)
      for palette in palettes {
        let colour = { (name: String) throws -> Double in
          let hex = try #require(palette.components(separatedBy: "--\(name): #").dropFirst().first?.prefix(6))
          let value = try #require(Int(hex, radix: 16))
          let channel = { (shift: Int) in
            let part = Double(value >> shift & 255) / 255
            return part <= 0.04045 ? part / 12.92 : pow((part + 0.055) / 1.055, 2.4)
          }
          return 0.2126 * channel(16) + 0.7152 * channel(8) + 0.0722 * channel(0)
        }
        let (one, other) = (try colour(front), try colour(back))
        #expect((max(one, other) + 0.05) / (min(one, other) + 0.05) >= 4.5)
      }
    }
  }
}
