import MoongateCore
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// Fields that are valid and not safe, or without effect, together: `check` warns of them.
@Suite struct RouteJudgementTests {
  private static func warnings(
    _ fields: String, to: String = "\"https://wiki.internal:8443\"", gateway: String = ""
  ) throws -> [String] {
    let settings = TestFolder.gateway.replacing("region", with: "\(gateway)region")
    let loaded = try ServiceFieldTests.folder(fields, to: to, ["gateway.lua": settings]).load(environment: ["WIKI": "x"]
    )
    return try loaded.get().warnings.map(\.description).filter { $0.hasPrefix("routes.lua") }
  }

  // MARK: credentials

  private static let basic = "identity = {\nbasic = { user = \"{email}\", password = env \"WIKI\" } }"

  /// Attack: whoever reads the network between the gateway and the service has the password.
  @Test(arguments: [
    "http://wiki.example.com", "http://203.0.113.7:8080", "http://[2001:db8::1]", "h2c://a.example.com",
  ])
  func passwordOverHTTPIsWarnedOf(_ upstream: String) throws {
    let shown = try #require(UpstreamText(upstream))
    #expect(
      try Self.warnings(Self.basic, to: "\"\(upstream)\"") == [
        "routes.lua:4: routes[1].identity.basic: the password would be sent unencrypted to \(shown.text): use https:// outside of a private network"
      ])
    #expect(
      try Self.warnings("bearer = \"reports\"", to: "\"\(upstream)\"") == [
        "routes.lua:3: routes[1].bearer: the tokens of users would be sent unencrypted to \(shown.text): use https:// outside of a private network"
      ])
  }

  /// The upstream as messages show it, with its port.
  private struct UpstreamText {
    let text: String

    init?(_ upstream: String) {
      let isHTTP2 = upstream.hasPrefix("h2c://")
      guard let url = PublicURL(parsing: isHTTP2 ? upstream.replacing("h2c://", with: "http://") : upstream) else {
        return nil
      }
      text = "\(isHTTP2 ? "h2c" : "http")://\(url.host):\(url.port)"
    }
  }

  @Test(arguments: [
    "https://wiki.example.com", "http://127.0.0.1:3000", "http://[::1]", "http://10.2.3.4", "http://192.168.1.1",
    "http://172.31.0.1", "http://100.64.0.1", "http://[fd00::1]", "http://wiki:8080", "http://wiki.internal",
    "http://wiki.default.svc.cluster.local",
  ]) func passwordInAPrivateNetworkIsFine(_ upstream: String) throws {
    #expect(try Self.warnings(Self.basic, to: "\"\(upstream)\"") == [])
  }

  // MARK: networks

  private static let networks = "allow = {\nnetworks = { \"10.0.0.0/8\" } }"

  /// Attack: a machine that the gateway takes for a proxy claims an address of the office, and needs no session.
  @Test(arguments: ["0.0.0.0/0", "::/0", "64.0.0.0/2", "2000::/3"])
  func forgeableAddressesOfOpenNetworksAreWarnedOf(_ block: String) throws {
    #expect(
      try Self.warnings(Self.networks, gateway: "trusted_proxies = { \"\(block)\" }, ").contains(
        "routes.lua:4: routes[1].allow.networks: trusted_proxies has \(block), so every machine there can claim one of these addresses and needs no session: name only the addresses of your own proxies there"
      ))
  }

  @Test func networksBesideOwnProxiesAreFine() throws {
    for block in ["127.0.0.1/32", "10.0.0.1/32", "192.168.0.0/16", "fd00::/8"] {
      #expect(try Self.warnings(Self.networks, gateway: "trusted_proxies = { \"\(block)\" }, ") == [])
    }
  }

  @Test func networkOfProxiesOpensNothing() throws {
    #expect(
      try Self.warnings(Self.networks, gateway: "trusted_proxies = { \"10.0.0.0/8\" }, ") == [
        "routes.lua:4: routes[1].allow.networks[1]: opens the route to no client: 10.0.0.0/8 is within 10.0.0.0/8 of trusted_proxies, whose addresses are those of proxies"
      ])
  }

  /// Attack: a proxy of which the gateway does not know ends TLS. All clients have its address, and need no session.
  @Test func networksBehindAnUntrustedProxyAreRefused() throws {
    func problems(_ more: String) throws -> [String] {
      let gateway = TestFolder.gateway.replacing("http://localhost:8080", with: "https://auth.example.com")
        .replacing("outbox()", with: "outbox { allow_public = true }").replacing("region", with: "\(more)region")
      let folder = try ServiceFieldTests.folder(
        Self.networks, to: "\"http://127.0.0.1:3000\"", ["gateway.lua": gateway])
      return folder.problems().filter { $0.hasPrefix("routes.lua") }
    }
    #expect(
      try problems("") == [
        "routes.lua:4: routes[1].allow.networks: requires `trusted_proxies` in gateway.lua: public_url is https and `tls` is missing, so a proxy is in front, whose address all clients would have"
      ])
    #expect(try problems("trusted_proxies = { \"10.0.0.1/32\" }, ") == [])
  }

  // MARK: other fields

  @Test func wordThatLooksLikeAHostIsWarnedOf() throws {
    #expect(
      try Self.warnings("host_header = \"upstrem\"") == [
        "routes.lua:3: routes[1].host_header: the service receives \"upstrem\" as its host; did you mean \"upstream\"?"
      ])
    #expect(try Self.warnings("host_header = \"wiki\"") == [])
  }

  @Test func balanceOfOneUpstreamIsWarnedOf() throws {
    #expect(
      try Self.warnings("balance = \"sticky\"") == [
        "routes.lua:3: routes[1].balance: has no effect: the route has only one upstream"
      ])
    let both = "{ \"http://a\", \"http://b\" }"
    #expect(
      try Self.warnings("balance = \"sticky\"", to: both) == [
        "routes.lua:3: routes[1].balance: requests of an account stay with an upstream that answers only errors: add `health`, which finds that out"
      ])
    #expect(try Self.warnings("balance = \"sticky\", health = { path = \"/\" }", to: both) == [])
    #expect(try Self.warnings("balance = \"round_robin\"", to: both) == [])
  }

  /// Attack: a user takes the name of another one, whom the service then believes to see.
  @Test(arguments: ["{name}", "{first_name}.{last_name}", "{groups}"])
  func identityThatUsersCanShareIsWarnedOf(_ value: String) throws {
    let rest =
      "two users can have the same value, because users choose their names: use {id}, {email}, {phone} or {username}"
    #expect(
      try Self.warnings("identity = { user = { \"X-User\", value = \"\(value)\" } }") == [
        "routes.lua:3: routes[1].identity.user.value: \(rest)"
      ])
    #expect(
      try Self.warnings("identity = { basic = { user = \"\(value)\", password = env \"WIKI\" } }") == [
        "routes.lua:3: routes[1].identity.basic.user: \(rest)"
      ])
  }

  @Test(arguments: ["{id}", "{username}", "{name} <{email}>", "{claim.plan}", "{phone}"])
  func identityOfOneUserIsFine(_ value: String) throws {
    #expect(try Self.warnings("identity = { user = { \"X-User\", value = \"\(value)\" } }") == [])
    #expect(try Self.warnings("identity = { name = { \"X-Name\", value = \"{name}\" } }") == [])
    #expect(try Self.warnings("identity = { basic = { user = \"reader\", password = env \"WIKI\" } }") == [])
  }

  @Test func framesNeedHTTPSOfTheGateway() throws {
    let settings = TestFolder.gateway.replacing("http://localhost:8080", with: "http://auth.example.com")
      .replacing("outbox()", with: "outbox { allow_public = true }")
    let folder = try ServiceFieldTests.folder("frames = { \"https://portal.example.com\" }", ["gateway.lua": settings])
    #expect(
      folder.problems() == [
        "routes.lua:3: routes[1].frames: no user can sign in within a frame: public_url must be https for that"
      ])
  }

  // MARK: proxy_protocol

  private static func gateway(_ lines: String) -> [String: String?] {
    ["gateway.lua": TestFolder.gateway.replacing("region", with: "\(lines)\nregion")]
  }

  /// Attack: a client sends a PROXY header itself, and claims any address.
  @Test func proxyProtocolIsTakenFromTrustedProxiesOnly() throws {
    let trusted = try TestFolder(
      Self.gateway("proxy_protocol = true, trusted_proxies = { \"10.0.0.1/32\" },")
    ).generation()
    #expect(trusted.gateway.takesProxyProtocol && trusted.warnings.isEmpty)
    #expect(try !TestFolder().generation().gateway.takesProxyProtocol)
    #expect(
      try TestFolder(Self.gateway("proxy_protocol = true,")).problems() == [
        "gateway.lua:3: proxy_protocol: requires `trusted_proxies`, the addresses of the proxies that send the header"
      ])
    let wide = try TestFolder(
      Self.gateway("proxy_protocol = true, trusted_proxies = { \"0.0.0.0/0\" },")
    ).generation()
    #expect(
      wide.warnings.map(\.description) == [
        "gateway.lua:3: proxy_protocol: trusted_proxies has 0.0.0.0/0: every machine there can claim to be any client. Name only the addresses of your own proxies"
      ])
  }
}
