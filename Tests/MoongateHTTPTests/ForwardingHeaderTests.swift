import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateProxy
import MoongateTesting
import Testing

@testable import MoongateHTTP

/// The gateway's own endpoints behind a proxy, and the requests that they redirect to sign-in.
@Suite struct ForwardingHeaderTests {
  private func gateway() throws -> HTTPGateway {
    var settings = GatewaySettings.test()
    settings.trustedProxies = [AddressBlock(network: ClientAddress.unspecified.bytes, prefix: 32)]
    return try HTTPGateway(settings: settings)
  }

  private func told(_ client: Client) -> [String] {
    client.gateway.log.lines.filter { $0.contains("a forwarding header cannot be read") }
  }

  @Test(arguments: ["/auth/login", "/api/auth/session", "/auth/style.css"])
  func anUnreadableSchemeOrHostIsRefused(_ path: String) async throws {
    try await gateway().run { client in
      for field in [("X-Forwarded-Proto", "gopher"), ("X-Forwarded-Host", "a b")] {
        let answer = try await client.send(.get, path, headers: [field])
        #expect(answer.status == 400 && answer.problem() == "bad_request", "\(field)")
      }
      let page = try await client.send(
        .get, "/auth/login", headers: [("X-Forwarded-Proto", "gopher"), ("Accept", "text/html")])
      #expect(page.status == 400 && page.text.contains("<html"))
      let lines = told(client)
      #expect(lines.count == 2 && lines[0].contains("gopher") && lines[1].contains("X-Forwarded-Host"), "\(lines)")
    }
  }

  @Test func anUnreadableAddressIsLogged() async throws {
    try await gateway().run { client in
      for _ in 0..<2 {
        let answer = try await client.send(.get, "/auth/login", headers: [("X-Forwarded-For", "9.9.9.9, unknown")])
        #expect(answer.status == 200)
      }
      #expect(told(client).count == 1 && told(client)[0].contains("unknown"))
    }
  }

  /// Attack: a client uses a new port with each sign-in to get fresh limits.
  @Test func twoPortsAreOneClient() async throws {
    try await gateway().run { client in
      for (number, value) in ["203.0.113.9:50001", "\"203.0.113.9:50002\"", "203.0.113.9"].enumerated() {
        let answer = try await client.call(
          .post, "/api/auth/flows", #"{"flow":"login"}"#,
          headers: [("X-Forwarded-For", value), ("X-Forwarded-Proto", "wss, https,")])
        #expect(answer.status == 201, "\(number)")
        let refused = try await client.call(.get, "/api/auth/session", headers: [("X-Forwarded-For", value)])
        let event = try await client.gateway.audit.event(
          DecisionID(text: try #require(refused["decision_id"] as? String)))
        #expect(event?.address == "203.0.113.9")
      }
    }
  }

  /// Attack: a client of a Unix socket, whose connection has the address of the trusted proxy, writes the headers.
  @Test(arguments: [(true, 400), (false, 200)])
  func connectionOfAnUnstatedClientForwardsNothing(_ mayForward: Bool, _ status: Int) async throws {
    let http = try gateway()
    let proto = try #require(HTTPField.Name("X-Forwarded-Proto"))
    let head = HTTPRequest(
      method: .get, scheme: "http", authority: "localhost", path: "/auth/login", headerFields: [proto: "gopher"])
    let peer = ConnectionPeer(.unspecified, mayForward: mayForward)
    let response = try await ConnectionContext.$client.withValue(peer) {
      try await http.responder.respond(
        to: Request(head: head, body: RequestBody(buffer: .init())),
        context: ConnectionContext(source: .testing(http.gateway)))
    }
    #expect(response.status.code == status)
  }

  /// RFC 9110 section 9.3.7.
  @Test func aRequestAboutTheServerHasAnAnswer() async throws {
    let http = try gateway()
    let head = HTTPRequest(method: .options, scheme: "http", authority: "localhost", path: "*")
    let response = try await http.responder.respond(
      to: Request(head: head, body: RequestBody(buffer: .init())),
      context: ConnectionContext(source: .testing(http.gateway)))
    #expect(response.status.code == 204)
  }

  /// A script must not read the sign-in page in place of its answer.
  @Test(arguments: [
    "/auth/account", "/auth/account/tokens", "/auth/account/delete", "/auth/account/sign-out",
  ])
  func onlyNavigationsAreRedirectedToSignIn(_ path: String) async throws {
    try await gateway().run { client in
      for fields in [
        [("Accept", "text/html")], [("Sec-Fetch-Mode", "navigate"), ("Accept", "*/*")],
      ] {
        let answer = try await client.send(.get, path, headers: fields)
        #expect(answer.status == 303 && answer.header("Location")?.hasPrefix("/auth/login") == true, "\(fields)")
      }
      for fields in [
        [], [("Accept", "text/html"), ("X-Requested-With", "XMLHttpRequest")], [("Accept", "text/html;q=0")],
        [("Accept", "text/html"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Purpose", "prefetch")],
      ] {
        let answer = try await client.send(.get, path, headers: fields)
        #expect(answer.status == 401 && answer.header("Location") == nil, "\(fields)")
      }
      // The pages' own script gets the address.
      let scripted = try await client.send(
        .get, path, headers: [("Moongate-Page", "script"), ("Sec-Fetch-Mode", "cors")])
      #expect(scripted.status == 200 && scripted.text.contains("/auth/login"))
    }
  }
}
