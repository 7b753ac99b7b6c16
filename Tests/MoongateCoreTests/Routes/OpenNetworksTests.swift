import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

/// `allow.networks`: which clients need no session.
@Suite struct OpenNetworksTests {
  private func route(_ networks: [String], host: String? = "wiki.example.com", isOpen: Bool = false) throws -> Route {
    var route = Route(
      host: host, path: PathPattern(text: "/**", segments: [.anySegments]), methods: nil, upstreams: [],
      isOpen: isOpen, flow: "login", requirement: nil, decide: nil, timeout: .seconds(30), allowsUpgrade: false,
      headers: [], bodyLimit: nil, location: SourceLocation(file: "routes.lua", line: 1))
    route.openNetworks = try networks.map { try #require(AddressBlock($0)) }
    return route
  }

  private func address(_ text: String) throws -> ClientAddress {
    try #require(ClientAddress(bytes: IPAddressBytes.parseV4(text.utf8) ?? IPAddressBytes.parseV6(text.utf8) ?? []))
  }

  private var settings: GatewaySettings {
    var settings = GatewaySettings.test(publicURL: PublicURL(isSecure: true, host: "auth.example.com", port: 443))
    settings.trustedProxies = ["10.0.0.5/32", "fd00::5/128"].compactMap(AddressBlock.init)
    return settings
  }

  @Test(arguments: [
    ("10.0.0.1", true), ("10.255.255.255", true), ("11.0.0.0", false), ("192.168.1.255", true), ("192.168.2.0", false),
    ("fd00::1", true), ("fd01::1", false), ("::ffff:10.0.0.1", true), ("203.0.113.7", false),
    // Attack: the proxy names no client, or one that cannot be read. All its clients have its address then.
    ("10.0.0.5", false), ("fd00::5", false), ("::ffff:10.0.0.5", false),
  ])
  func theAddressDecides(_ client: String, _ isOpen: Bool) throws {
    let route = try route(["10.0.0.0/8", "192.168.1.0/24", "fd00::/16"])
    #expect(route.isOpen(to: try address(client), at: "wiki.example.com", in: settings) == isOpen)
  }

  @Test func aConnectionWithoutAddressIsInNoNetwork() throws {
    let route = try route(["0.0.0.0/0", "::/0"])
    #expect(!route.isOpen(to: .unspecified, at: "wiki.example.com", in: settings))
    #expect(route.isOpen(to: try address("203.0.113.7"), at: "wiki.example.com", in: settings))
    #expect(route.isOpen(to: try address("2001:db8::1"), at: "wiki.example.com", in: settings))
  }

  @Test func otherRoutesAreOpenToAllOrToNone() throws {
    let client = try address("10.0.0.1")
    #expect(try route([], isOpen: true).isOpen(to: client, at: "evil.example", in: settings))
    #expect(try !route([]).isOpen(to: client, at: "wiki.example.com", in: settings))
  }

  /// Attack: DNS rebinding. A page of a user in the network gets its own name to lead to the gateway, and reads the
  /// service with the user's address.
  @Test(arguments: [
    ("evil.example", false), ("example.com.evil.example", false), ("notexample.com", false), ("auth.example.com", true),
    ("wiki.example.com", true), ("example.com", true), ("wiki.example.org", true), ("localhost", true),
    ("10.0.0.5", true), ("[::1]", true), ("1.2.3.4.evil.example", false), ("wiki", false),
  ])
  func aHostThatAnybodyMayPointToTheGatewayDoesNotCount(_ host: String, _ isOpen: Bool) throws {
    var settings = settings
    settings.cookieDomain = "example.com"
    settings.domains = ["example.com", "example.org"]
    let client = try address("10.0.0.1")
    #expect(try route(["10.0.0.0/8"], host: nil).isOpen(to: client, at: host, in: settings) == isOpen)
    // The operator has named the host of this route.
    #expect(try route(["10.0.0.0/8"], host: host).isOpen(to: client, at: host, in: settings))
  }
}
