import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateCore

/// Which redirect URIs apps register, and which addresses match them.
@Suite struct RedirectURITests {
  @Test(arguments: [
    "https://app.example.com/in", "https://app.example.com", "https://app.example.com/in?from=a&x=%2F",
    "https://app.example.com:8443/in", "https://[2001:db8::1]/in", "http://localhost/in", "http://localhost:3000/in",
    "http://127.0.0.1/in", "http://127.0.0.1", "http://[::1]/in", "com.example.app:/in", "com.example.app://in/x?y=1",
  ])
  func registered(_ text: String) throws { #expect(try RedirectURI(text).matches(text)) }

  @Test(arguments: [
    ("https://app.example.com/in#x", "fragment"), ("com.example.app:/in#", "fragment"),
    ("https://*.example.com/in", "wildcard"), ("https://app.example.com/*", "wildcard"),
    ("http://app.example.com/in", "http"), ("http://127.example.com/in", "http"), ("http://localhost.evil/in", "http"),
    ("https:///in", "host"), ("https://", "host"), ("https:/in", "host"), ("https:in", "host"),
    ("https://user@app.example.com/in", "user information"), ("https://app..example.com/", "host"),
    ("https://app.example.com:0/", "host"), ("https://app.example.com:/", "write \"https://app.example.com/\""),
    ("https://App.example.com/in", "write \"https://app.example.com/in\""),
    ("https://app.example.com:443/in", "write \"https://app.example.com/in\""),
    ("https://app.example.com./in", "write \"https://app.example.com/in\""),
    ("http://localhost:80/in", "write \"http://localhost/in\""), ("HTTPS://app.example.com/in", "absolute"),
    ("myapp:/in", "with a dot"), ("javascript:alert(1)", "with a dot"), ("data:text/html,x", "with a dot"),
    ("com.example.app:in", "no path"), ("com.example.app:", "no path"), ("/in", "absolute"), ("", "absolute"),
    ("app.example.com/in", "absolute"), ("https://app.example.com/a b", "character"),
    ("https://app.example.com/\\evil", "character"), ("https://app.example.com/\r\nX: y", "character"),
    ("https://app.example.com/é", "character"), ("https://app.example.com/\"", "character"),
    ("https://app.example.com/" + String(repeating: "a", count: 2000), "longer"),
  ])
  func refused(_ text: String, because part: String) {
    #expect { _ = try RedirectURI(text) } throws: { error in
      (error as? RedirectURIProblem)?.message.contains(part) ?? false
    }
  }

  /// Attack: an address that looks like the registered one, or that a browser or server turns into it, and leads
  /// elsewhere: user information, another port, case, a trailing dot, encoding, traversal, added parameters.
  @Test(arguments: [
    "https://app.example.com/in/", "https://app.example.com/in?", "https://app.example.com/in?x=1",
    "https://app.example.com/in#x", "https://app.example.com/in;x", "https://app.example.com/in/../user",
    "https://app.example.com/./in", "https://app.example.com/x/%2e%2e/in", "https://app.example.com//in",
    "https://app.example.com/%69n", "https://app.example.com/IN", "https://APP.example.com/in",
    "HTTPS://app.example.com/in", "https://app.example.com./in", "https://app.example.com:443/in",
    "https://app.example.com:8443/in", "https://app.example.com:/in", "https://app.example.com@evil.example/in",
    "https://evil.example@app.example.com/in", "https://evil.example/in", "https://app.example.com.evil.example/in",
    "https://app.example.com\\@evil.example/in", "http://app.example.com/in", "//app.example.com/in", "/in", "",
    " https://app.example.com/in", "https://app.example.com/in ", "https://app.example.com/in\n",
    "https://app.example.com/in\r\nSet-Cookie: x=y", "https://app.example.com/in\u{0}",
    "https://app.example.com/i\u{6e}\u{301}",
  ])
  func otherAddress(_ text: String) throws {
    #expect(!(try RedirectURI("https://app.example.com/in").matches(text)))
  }

  /// Attack: texts that compare equal as strings and not as bytes.
  @Test func canonicallyEquivalentTextDoesNotMatch() throws {
    let uri = try RedirectURI("com.example.app:/in;x")
    let look = "com.example.app:/in\u{37e}x"
    #expect(uri.text == look && !uri.matches(look))
  }

  /// RFC 8252 section 7.3: an app takes any free port of its machine.
  @Test(arguments: ["http://127.0.0.1/in?x=1", "http://127.0.0.1:4567/in?x=1"])
  func loopbackMatchesWithAnyPort(registered: String) throws {
    let uri = try RedirectURI(registered)
    for port in ["", ":1", ":80", ":8080", ":65535"] {
      #expect(uri.matches("http://127.0.0.1\(port)/in?x=1"), "\(port)")
    }
    for port in [
      ":", ":0", ":080", ":65536", ":123456", ":-1", ":+1", ":1x", ":80@evil.example", ":80:80", ".evil.example",
    ] {
      #expect(!uri.matches("http://127.0.0.1\(port)/in?x=1"), "\(port)")
    }
    for other in [
      "https://127.0.0.1:8080/in?x=1", "http://localhost:8080/in?x=1", "http://127.0.0.2:8080/in?x=1",
      "http://[::1]:8080/in?x=1", "http://127.0.0.1:8080/in", "http://127.0.0.1:8080/in?x=1&y=2",
      "http://127.0.0.1:8080/in?x=1#", "http://user@127.0.0.1:8080/in?x=1", "http://127.0.0.1:8080/x/../in?x=1",
    ] {
      #expect(!uri.matches(other), "\(other)")
    }
  }

  @Test func portOfHTTPSIsNotFree() throws {
    #expect(!(try RedirectURI("https://localhost/in").matches("https://localhost:8443/in")))
  }

  /// Attack: the address of a loopback app with the gateway's own port leads to a service of the gateway.
  @Test func gatewaysOwnPortReceivesNothing() throws {
    let own = PublicURL(isSecure: false, host: "localhost", port: 8080)
    let app = App(
      id: "desktop", name: "Desktop", redirectURIs: [try RedirectURI("http://localhost/in")], consent: .once)
    let apps = AppTable([app], own: own)
    #expect(apps.app(receivingAt: "http://localhost:8080/in") == nil)
    #expect(apps.app(receivingAt: "http://localhost:8081/in") == app)
  }

  @Test func appOfAnAddressIsTheOneThatRegistersIt() throws {
    let apps = AppTable(
      try ["a", "b"].map {
        App(id: $0, name: $0, redirectURIs: [try RedirectURI("com.example.\($0):/in")], consent: .once)
      }, own: nil)
    #expect(apps.app(receivingAt: "com.example.b:/in")?.id == "b")
    #expect(apps.app(receivingAt: "com.example.c:/in") == nil)
    #expect(apps.registers(try .test(client: "a", redirect: "com.example.a:/in")))
    #expect(!apps.registers(try .test(client: "a", redirect: "com.example.b:/in")))
    #expect(!apps.registers(try .test(client: "c", redirect: "com.example.a:/in")))
    #expect(AppTable.none.app(receivingAt: "com.example.a:/in") == nil)
  }

  /// Attack: a flow that is begun by the API sends its code, which is worth a session, to an app that expects a code of
  /// OpenID Connect, or whose rule was not judged.
  @Test func onlyPublicAppsWithoutARuleReceiveFlows() throws {
    let uri = try RedirectURI("com.example.a:/in")
    func receives(
      _ authentication: AppAuthentication = .none, _ requirement: AppRequirement = AppRequirement(),
      decide: FunctionName? = nil
    ) throws -> Bool {
      let app = App(
        id: "a", name: "A", redirectURIs: [uri], consent: .once, authentication: authentication,
        requirement: requirement, decide: decide)
      let table = AppTable([app], own: nil)
      let grant = try Grant.test(client: "a", redirect: uri.text)
      #expect(table.takesFlow(with: grant) == (table.app(receivingAt: uri.text) != nil) && table.registers(grant))
      return table.takesFlow(with: grant)
    }
    #expect(try receives())
    #expect(try !receives(.secret(SecretText("a secret"))) && !receives(.keys("https://a.example/keys")))
    #expect(try !receives(.none, AppRequirement(factors: 2)))
    #expect(try !receives(.none, AppRequirement(steps: [.emailVerified])))
    #expect(try !receives(decide: FunctionName("apps.a.decide")))
  }
}
