import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateProxy

/// Access tokens in combination with cookies, browsers, groups, and changing accounts.
@Suite(.timeLimit(.minutes(2))) struct TokenAttackTests {
  private static var ops: GroupName { get throws { try GroupName(test: "ops") } }
  private static let switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

  private static func basic(_ pair: String) -> String {
    "Authorization: Basic \(Data(pair.utf8).base64EncodedString())"
  }

  private func request(_ path: String, _ fields: String...) -> String {
    (["GET \(path) HTTP/1.1", "Host: localhost"] + fields).joined(separator: "\r\n") + "\r\n\r\n"
  }

  private func upgrade(_ fields: String...) -> String {
    (["GET / HTTP/1.1", "Host: localhost", "Connection: Upgrade", "Upgrade: websocket"] + fields).joined(
      separator: "\r\n") + "\r\n\r\n"
  }

  /// An upstream that accepts every tunnel.
  private func tunnels() async throws -> RecordingUpstream {
    try await RecordingUpstream { RecordingUpstream.isComplete($0) ? .answer(Self.switching) : nil }
  }

  /// Attack: an owner sends the token in an unsupported way (another scheme, none, as the user of Basic), on a route
  /// whose service logs it.
  @Test func tokenInTheWrongPlaceReachesNoService() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [
      .test("/any/**", ports: [upstream.port], tokens: .services),
      .test("/open/**", ports: [upstream.port], open: true),
      .test(ports: [upstream.port]),
    ])
    let text = try await gateway.token().text
    let pair = Data("\(text):".utf8).base64EncodedString()
    let person = "Cookie: moongate=\(TestGateway.token)"
    for field in [
      "Authorization: token \(text)", "Authorization: \(text)", "Authorization: Token   \(text)",
      "Authorization: Digest \(text)",
      "Authorization: \(text) x", Self.basic("\(text):"), Self.basic("\(text):x-oauth-basic"), Self.basic("\(text)x:y"),
    ] {
      let any = try await gateway.talk(request("/any/x", field))
      #expect(any.hasPrefix("HTTP/1.1 401"), "\(field)")
      #expect(try await gateway.talk(request("/open/x", field)).hasPrefix("HTTP/1.1 200"))
      #expect(try await gateway.talk(request("/x", person, field)).hasPrefix("HTTP/1.1 200"))
    }
    #expect(!upstream.all.contains("mgt_") && !upstream.all.contains(pair) && !upstream.all.contains("Authorization"))
    // The service's own credentials are forwarded.
    let own = "Authorization: token abc"
    #expect(try await gateway.talk(request("/x", person, own)).hasPrefix("HTTP/1.1 200") && upstream.all.contains(own))
    await gateway.stop()
  }

  /// Attack: a user has typed a token into the browser's dialog for Basic authentication. The browser then adds it to
  /// WebSocket requests of other sites' pages.
  @Test func pageOfAnotherSiteOpensNoSocketByBasic() async throws {
    let upstream = try await tunnels()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], upgrade: true, tokens: .services)])
    let text = try await gateway.token().text
    let basic = Self.basic("any:\(text)")
    for origin in ["https://evil.example", "null", "http://localhost.evil.example", "http://localhost:1"] {
      let answer = try await gateway.talk(upgrade(basic, "Origin: \(origin)"))
      #expect(answer.hasPrefix("HTTP/1.1 403") && answer.contains("origin_refused"), "\(origin)")
    }
    #expect(
      try await gateway.talk(upgrade(basic, "Origin: http://localhost", "Origin: http://localhost")).hasPrefix(
        "HTTP/1.1 403"))
    #expect(upstream.all.isEmpty)
    // A page of the service itself, a program, and a Bearer value, which browsers never add.
    for fields in [
      [basic, "Origin: http://localhost"], [basic], ["Authorization: Bearer \(text)", "Origin: https://tool.example"],
    ] {
      #expect(try await gateway.talk(upgrade(fields.joined(separator: "\r\n"))).hasPrefix("HTTP/1.1 101"), "\(fields)")
    }
    await gateway.stop()
  }

  /// Attack: a user has typed a token into the browser's dialog for Basic authentication. The browser then adds it to
  /// forms of other sites, because `SameSite` does not apply to it.
  @Test func pageOfAnotherSiteChangesNothingByBasic() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(
      routes: [.test(ports: [upstream.port], tokens: .services)],
      change: { $0.gateway.trustedProxies = [AddressBlock(network: [127, 0, 0, 1], prefix: 32)] })
    let text = try await gateway.token().text
    let basic = Self.basic("any:\(text)")
    func post(_ method: String, _ fields: String...) async throws -> String {
      try await gateway.talk(request("/x", fields.joined(separator: "\r\n")).replacing("GET", with: method))
    }
    func ask(_ method: String, _ fields: String...) async throws -> String {
      let question = ForwardAuthTests.question("haproxy", method, scheme: "http", host: "localhost", "/x")
      return try await gateway.talk(ForwardAuthTests.text(question, fields.joined(separator: "\r\n") + "\r\n"))
    }
    for origin in ["https://evil.example", "null", "http://localhost.evil.example", "http://localhost:1"] {
      for method in ["POST", "PUT", "DELETE", "PROPPATCH"] {
        let answer = try await post(method, basic, "Origin: \(origin)")
        #expect(answer.hasPrefix("HTTP/1.1 403") && answer.contains("origin_refused"), "\(method) \(origin)")
        let asked = try await ask(method, basic, "Origin: \(origin)")
        #expect(asked.hasPrefix("HTTP/1.1 403") && asked.contains("origin_refused"), "\(method) \(origin)")
      }
    }
    #expect(upstream.all.isEmpty)
    // git, WebDAV and curl send no Origin. Pages of the service send its own, and browsers never add Bearer.
    for (method, fields) in [
      ("POST", basic), ("PROPFIND", basic), ("POST", "\(basic)\r\nOrigin: http://localhost"),
      ("GET", "\(basic)\r\nOrigin: https://evil.example"),
      ("POST", "Authorization: Bearer \(text)\r\nOrigin: https://tool.example"),
    ] {
      #expect(try await post(method, fields).hasPrefix("HTTP/1.1 200"), "\(method) \(fields)")
      // By forward-auth, such a GET could begin a WebSocket.
      let refuses = method == "GET"
      #expect(try await ask(method, fields).hasPrefix("HTTP/1.1 \(refuses ? 403 : 200)"), "\(method) \(fields)")
    }
    await gateway.stop()
  }

  /// Attack: a personal token keeps a socket open, or is accepted, after the user was locked or deleted, signed out
  /// everywhere, or left the group.
  @Test(arguments: ["lock", "delete", "sign out everywhere", "leave the group"])
  func personalTokenEndsWithItsOwnersRights(_ how: String) async throws {
    let upstream = try await tunnels()
    let gateway = try await TestGateway(
      routes: [.test(ports: [upstream.port], upgrade: true, groups: ["ops"], tokens: RouteTokens(takesPersonal: true))],
      change: { $0.accounts.groups = [try Self.ops: .members] })
    let now = gateway.clock.now()
    let secret = AccessTokenSecret(from: SystemRandom()).text
    let account = Account(id: "ac_1", createdAt: now, lastSeenAt: now)
    let token = AccessToken(
      id: "tk_1", name: "laptop", owner: AccountVersion(account), createdAt: now, expiresAt: nil,
      hash: gateway.keys.accessTokenHash(secret))
    let changes: [Change] = [
      .createAccount(account), .setGroupMembership(account: account.id, try Self.ops, true), .putAccessToken(token),
    ]
    _ = try await gateway.store.apply(changes, at: now)
    let bearer = "Authorization: Bearer \(secret.reveal())"
    let socket = try await RawClient(port: gateway.port)
    try await socket.send(upgrade(bearer))
    #expect(try await socket.read { $0.hasSuffix("\r\n\r\n") }.text.hasPrefix("HTTP/1.1 101"))
    #expect(upstream.all.contains("Remote-User: ac_1\r\n") && upstream.all.contains("Remote-Groups: ops\r\n"))
    let change: Change =
      switch how {
      case "lock": .setLocked(account: account.id, true)
      case "delete": .deleteAccount(account.id, traces: [])
      case "sign out everywhere": .raiseEpoch(account: account.id)
      default: .setGroupMembership(account: account.id, try Self.ops, false)
      }
    _ = try await gateway.store.apply([change], at: now)
    await gateway.proxy.forget(SessionChanges(latest: 0, tokens: [], accounts: [account.id], isIncomplete: false))
    #expect(try await socket.read(for: 5).ended)
    let answer = try await gateway.talk(request("/", bearer))
    #expect(answer.hasPrefix(how == "leave the group" ? "HTTP/1.1 403" : "HTTP/1.1 401"), "\(answer)")
    await gateway.stop()
  }

  /// Attack: a service token keeps its group after the group was removed from accounts.lua, and its socket stays open.
  @Test func groupOfATokenIsIgnoredAfterItsRemoval() async throws {
    let upstream = try await RecordingUpstream()
    let route = Route.test(ports: [upstream.port], groups: ["ops"], tokens: .services)
    let gateway = try await TestGateway(routes: [route], change: { $0.accounts.groups = [try Self.ops: .members] })
    let bearer = "Authorization: Bearer \(try await gateway.token(groups: ["ops"]).text)"
    #expect(try await gateway.talk(request("/", bearer)).hasPrefix("HTTP/1.1 200"))
    var next = TestGeneration(gateway: .test(), routes: [route], flows: [], policies: [])
    next.accounts.groups = [try GroupName(test: "staff"): .members]
    gateway.active.activate(next, at: gateway.clock.now())
    #expect(try await gateway.talk(request("/", bearer)).hasPrefix("HTTP/1.1 403"))
    await gateway.stop()
  }

  /// Attack: `decide` on a route that accepts tokens asks for completed steps. A token has none and is identified as a
  /// token.
  @Test func tokenHasNoPassedStepsInDecide() async throws {
    let upstream = try await RecordingUpstream()
    let decide = FunctionName("routes[1].decide")
    let gateway = try await TestGateway(
      routes: [.test(ports: [upstream.port], decide: decide, tokens: .services)],
      verdicts: [
        decide: { facts in
          guard let session = facts.session else { return .deny("nobody") }
          let isProgram =
            session.account == "token:ci" && session.passed.isEmpty && session.aal == 0 && session.email == nil
          return isProgram ? .requireAlso(ProviderName(test: "pin")) : .allow
        }
      ])
    let answer = try await gateway.talk(
      request("/", "Authorization: Bearer \(try await gateway.token().text)", "Accept: text/html"))
    #expect(answer.hasPrefix("HTTP/1.1 403") && answer.contains("step_up_required") && !answer.contains("Location:"))
    #expect(upstream.all.isEmpty)
    await gateway.stop()
  }
}
