import MoongateCore
import Testing

/// Which hop of `X-Forwarded-For` is taken as the client's address.
@Suite struct ForwardedClientTests {
  static let trusted = [
    AddressBlock(network: [10, 0, 0, 0], prefix: 8),
    AddressBlock(network: [0xfd] + Array(repeating: 0, count: 15), prefix: 8),
  ]

  static func read(peer: [UInt8], for list: [String] = [], proto: [String] = [], host: [String] = [])
    -> ForwardedClient?
  {
    ClientAddress(bytes: peer).map {
      ForwardedClient(
        peer: $0, trusted: trusted, isSecure: false, host: "own.example:8080", forwardedFor: list,
        forwardedProto: proto, forwardedHost: host)
    }
  }

  @Test(arguments: [
    (["9.9.9.9"], "9.9.9.9"), (["8.8.8.8, 9.9.9.9"], "9.9.9.9"), (["8.8.8.8", "9.9.9.9"], "9.9.9.9"),
    (["9.9.9.9, 10.0.0.2, 10.0.0.3"], "9.9.9.9"),
    (["9.9.9.9", " 10.0.0.2 ,10.0.0.3\t"], "9.9.9.9"), (["2001:db8::1"], "2001:db8::1"),
    (["::ffff:9.9.9.9"], "9.9.9.9"),
    (["9.9.9.9, fd00::1"], "9.9.9.9"),
    // Anything to the left of what the trusted proxies appended comes from the client and must not matter.
    (["rubbish, 9.9.9.9"], "9.9.9.9"), ([",,, 9.9.9.9"], "9.9.9.9"),
    // No usable entry: the peer's address is used.
    ([], "10.0.0.1"), ([""], "10.0.0.1"), (["rubbish"], "10.0.0.1"), (["9.9.9.9,"], "10.0.0.1"),
    (["9.9.9.9, unknown"], "10.0.0.1"),
    (["9.9.9.9:80"], "10.0.0.1"),
    (["09.9.9.9"], "10.0.0.1"), (["9.9.9"], "10.0.0.1"), (["[2001:db8::1]"], "10.0.0.1"),
    (["9.9.9.9\u{0}"], "10.0.0.1"),
    (["10.0.0.2, 10.0.0.3"], "10.0.0.1"),
    ([String(repeating: "10.0.0.2,", count: 10_000)], "10.0.0.1"),
  ])
  func lists(_ list: [String], _ address: String) {
    #expect(Self.read(peer: [10, 0, 0, 1], for: list)?.address.description == address)
  }

  @Test func forwardedHeadersOfUntrustedPeersAreIgnored() {
    let client = Self.read(peer: [11, 0, 0, 1], for: ["9.9.9.9"], proto: ["https"], host: ["admin.example"])
    #expect(client?.address.description == "11.0.0.1")
    #expect(client?.origin == "http://own.example:8080")
  }

  @Test(arguments: [
    (["https"], ["App.Example."], "https://app.example"), (["HTTPS"], ["app.example:443"], "https://app.example"),
    (["http"], ["app.example:80"], "http://app.example"),
    (["https"], ["[2001:DB8::1]:8443"], "https://[2001:db8::1]:8443"),
    (["https", "http"], ["a.example", "b.example"], "http://own.example:8080"),
    (["https, http"], ["a.example, b.example"], "http://own.example:8080"),
    (["ftp"], ["a@b"], "http://own.example:8080"), ([""], [""], "http://own.example:8080"),
    ([], [], "http://own.example:8080"),
  ])
  func schemeAndHost(_ proto: [String], _ host: [String], _ origin: String) {
    #expect(Self.read(peer: [10, 0, 0, 1], proto: proto, host: host)?.origin == origin)
  }
}
