import MoongateCore
import Testing

/// Who the client is behind trusted proxies.
@Suite struct ForwardedClientTests {
  static let trusted = [
    AddressBlock(network: [10, 0, 0, 0], prefix: 8),
    AddressBlock(network: [0xfd] + Array(repeating: 0, count: 15), prefix: 8),
  ]

  static func read(peer: [UInt8] = [10, 0, 0, 1], for list: [String] = [], proto: [String] = [], host: [String] = [])
    throws -> ForwardedClient
  {
    var fields = ForwardingFields()
    var bytes: [UInt8] = []
    let add = { (values: [String], lines: inout ForwardingFields.Lines) in
      for value in values {
        lines.append(bytes.count..<bytes.count + value.utf8.count)
        bytes += value.utf8
      }
    }
    add(list, &fields.addresses)
    add(proto, &fields.schemes)
    add(host, &fields.hosts)
    let peer = try #require(ClientAddress(bytes: peer))
    var client = ForwardedClient(peer: peer, isSecure: false, host: HostName("own.example:8080"))
    try client.read(fields, bytes.span, trusted: trusted)
    return client
  }

  @Test(arguments: [
    (["9.9.9.9"], "9.9.9.9"), (["8.8.8.8, 9.9.9.9"], "9.9.9.9"), (["8.8.8.8", "9.9.9.9"], "9.9.9.9"),
    (["9.9.9.9, 10.0.0.2, 10.0.0.3"], "9.9.9.9"), (["9.9.9.9", " 10.0.0.2 ,10.0.0.3\t"], "9.9.9.9"),
    (["2001:db8::1"], "2001:db8::1"), (["::ffff:9.9.9.9"], "9.9.9.9"), (["9.9.9.9, fd00::1"], "9.9.9.9"),
    // With a port, in brackets, in quotes (RFC 7239 section 6). The port is no part of the client.
    (["9.9.9.9:61598"], "9.9.9.9"), (["9.9.9.9:"], "9.9.9.9"), (["9.9.9.9:_hidden"], "9.9.9.9"),
    (["[2001:db8::1]"], "2001:db8::1"), (["[2001:db8::1]:443"], "2001:db8::1"),
    (["\"[2001:db8::1]:4711\""], "2001:db8::1"), (["\"9.9.9.9\""], "9.9.9.9"),
    (["9.9.9.9:1, 10.0.0.2:2, \"[fd00::1]:3\""], "9.9.9.9"),
    // Empty members are ignored (RFC 9110 section 5.6.1.2).
    (["9.9.9.9,"], "9.9.9.9"), (["9.9.9.9", ""], "9.9.9.9"), (["9.9.9.9 , ,\t,"], "9.9.9.9"),
    // Anything to the left of what the trusted proxies appended comes from the client and must not matter.
    (["rubbish, 9.9.9.9"], "9.9.9.9"), ([",,, 9.9.9.9"], "9.9.9.9"), (["\"8.8.8.8, 9.9.9.9"], "9.9.9.9"),
    // No member, or trusted proxies only: the peer's address is used.
    ([], "10.0.0.1"), ([""], "10.0.0.1"), ([" , ,"], "10.0.0.1"), (["10.0.0.2, 10.0.0.3"], "10.0.0.1"),
    ([String(repeating: "10.0.0.2,", count: 10_000)], "10.0.0.1"),
  ])
  func lists(_ list: [String], _ address: String) throws {
    let client = try Self.read(for: list)
    #expect(client.address.description == address && client.addressFault == nil)
  }

  /// The peer's address then stands for everybody behind the proxy, so the operator is told.
  @Test(arguments: [
    (["rubbish"], "rubbish"), (["9.9.9.9, unknown"], "unknown"), (["9.9.9.9", "_hidden"], "_hidden"),
    (["unknown, 10.0.0.2"], "unknown"), (["09.9.9.9"], "09.9.9.9"), (["9.9.9"], "9.9.9"),
    (["9.9.9.9\u{0}"], "9.9.9.9\u{0}"), (["9.9.9.9:123456"], "9.9.9.9:123456"), (["9.9.9.9:http"], "9.9.9.9:http"),
    (["9.9.9.9:1:2"], "9.9.9.9:1:2"), (["[9.9.9.9]:1"], "[9.9.9.9]:1"), (["[2001:db8::1"], "[2001:db8::1"),
    (["[2001:db8::1]x"], "[2001:db8::1]x"), (["\"9.9.9.9"], "\"9.9.9.9"), (["\""], "\""), (["\"\""], "\"\""),
    ([String(repeating: "x", count: 200)], String(repeating: "x", count: 100)),
  ])
  func unreadableMemberIsReported(_ list: [String], _ value: String) throws {
    let client = try Self.read(for: list)
    #expect(client.address.description == "10.0.0.1")
    #expect(client.addressFault?.header == .address && client.addressFault?.value == value)
  }

  @Test func forwardedHeadersOfUntrustedPeersAreIgnored() throws {
    let client = try Self.read(peer: [11, 0, 0, 1], for: ["9.9.9.9"], proto: ["gopher"], host: ["admin.example"])
    #expect(client.address.description == "11.0.0.1" && client.addressFault == nil)
    #expect(client.origin == "http://own.example:8080")
  }

  @Test(arguments: [
    (["https"], ["App.Example."], "https://app.example"), (["HTTPS"], ["app.example:443"], "https://app.example"),
    (["http"], ["app.example:80"], "http://app.example"), (["wss"], ["app.example"], "https://app.example"),
    (["WS"], ["app.example"], "http://app.example"), (["https"], ["app.example:"], "https://app.example"),
    (["https"], ["[2001:DB8::1]:8443"], "https://[2001:db8::1]:8443"),
    // The last value of all lines counts.
    (["http", "https"], ["b.example", "a.example"], "https://a.example"),
    (["http, https"], ["b.example, a.example"], "https://a.example"), (["gopher, https,"], ["a@b, c"], "https://c"),
    ([], [], "http://own.example:8080"), (["https"], [], "https://own.example:8080"),
  ])
  func schemeAndHost(_ proto: [String], _ host: [String], _ origin: String) throws {
    #expect(try Self.read(proto: proto, host: host).origin == origin)
  }

  /// The connection's own scheme and the Host of the proxy's own request never stand in for a header that is there.
  @Test(
    arguments: [
      (["gopher"], [], .scheme, "gopher"), (["https, ftp"], [], .scheme, "ftp"), (["https:"], [], .scheme, "https:"),
      ([""], [], .scheme, ""), ([","], [], .scheme, ""), (["h\u{54}tps\u{0}"], [], .scheme, "hTtps\u{0}"),
      ([], ["a@b"], .host, "a@b"), ([], ["a.example, a b"], .host, "a b"), ([], [""], .host, ""),
      ([], [" ,"], .host, ""),
      ([], ["a.example:99999"], .host, "a.example:99999"),
    ] as [([String], [String], ForwardingHeader, String)])
  func unreadableSchemeOrHostIsRefused(
    _ proto: [String], _ host: [String], _ header: ForwardingHeader, _ value: String
  ) {
    let fault = #expect(throws: ForwardingFault.self) { try Self.read(for: ["9.9.9.9"], proto: proto, host: host) }
    #expect(fault?.header == header && fault?.value == value)
  }
}
