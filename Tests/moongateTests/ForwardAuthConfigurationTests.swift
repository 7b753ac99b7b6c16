import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateGateway

/// What `moongate proxy` prints: the configurations of the guides, with the headers that routes name.
@Suite struct ForwardAuthConfigurationTests {
  private typealias Proxy = ForwardAuthConfiguration.Proxy

  private static let guides =
    URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().path + "/Documentation/guides/"

  /// The settings of the guides.
  private static let gateway: GatewaySettings = {
    var gateway = GatewaySettings.test(publicURL: PublicURL(isSecure: true, host: "auth.example.com", port: 443))
    gateway.listen = ListenAddress(host: "127.0.0.1", port: 8080)
    return gateway
  }()

  private static func route(_ change: (inout Route) -> Void) -> Route {
    var route = Route(
      host: nil, path: PathPattern(text: "/**", segments: [.anySegments]), methods: nil,
      upstreams: [Upstream(isSecure: false, host: "127.0.0.1", port: 3000)], isOpen: false, flow: "login",
      requirement: nil, decide: nil, timeout: .seconds(30), allowsUpgrade: false, headers: [], bodyLimit: nil,
      location: SourceLocation(file: "routes.lua", line: 2))
    change(&route)
    return route
  }

  private static func configuration(
    _ proxy: Proxy, names: [String] = [], bearer: String? = nil, _ gateway: GatewaySettings = gateway
  ) -> ForwardAuthConfiguration {
    let routes = names.map { name in
      route { $0.identity.headers[.user] = ServiceIdentity.Header(name: name, value: IdentityTemplate([.email])) }
    }
    return ForwardAuthConfiguration(proxy, RouteTable(routes: routes + [route { $0.bearer = bearer }]), gateway)
  }

  private static func lines(_ text: String) -> [String] {
    text.components(separatedBy: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
  }

  /// Without names of routes, the command prints the blocks of the guide, which the end-to-end tests run.
  @Test(arguments: [
    ("nginx", "nginx.md", ["nginx.conf"]), ("traefik", "traefik.md", ["traefik.yml", "moongate.yml"]),
    ("caddy", "caddy.md", ["Caddyfile"]), ("envoy", "envoy.md", ["envoy.yaml"]),
    ("haproxy", "haproxy.md", ["haproxy.cfg", "moongate.lua"]),
  ]) func printsTheBlocksOfTheGuide(_ proxy: String, _ page: String, _ files: [String]) throws {
    let guide = try String(contentsOfFile: Self.guides + page, encoding: .utf8)
    let blocks = guide.matches(of: /(?ms)^```\w+\n(.*?)^```$/).map { String($0.1) }
    let own = try files.map { file in
      let found = blocks.filter { block in
        ["# \(file)", "-- \(file)"].contains { block.hasPrefix($0 + "\n") || block.hasPrefix($0 + ":") }
      }
      try #require(found.count == 1, "\(found.count) blocks for \(file)")
      return found[0]
    }
    let printed = Self.configuration(try #require(Proxy(rawValue: proxy))).text
    #expect(printed == own.joined(separator: "\n"), "the template differs from \(page)")
  }

  /// Each line that is changed is there once: an edit of a template cannot lose a header silently.
  @Test(arguments: ["nginx", "traefik", "caddy", "envoy", "haproxy"]) func everyEditedLineIsThereOnce(
    _ proxy: String
  ) throws {
    let proxy = try #require(Proxy(rawValue: proxy))
    let template = Self.lines(Self.configuration(proxy).text)
    let edits = Self.configuration(proxy, names: ["X-Email", "X-WEBAUTH-USER"], bearer: "reports").edits
    #expect(!edits.isEmpty)
    for edit in edits where !edit.lines.isEmpty {
      #expect(template.count { $0 == edit.line } == 1, "\(edit.line)")
    }
  }

  @Test func nginxCopiesEveryName() {
    let text = Self.lines(Self.configuration(.nginx, names: ["X-Email", "X-WEBAUTH-USER", "X_Login"]).text)
    for line in [
      "proxy_hide_header X-Email;", "auth_request_set $moongate_header_x_email $upstream_http_x_email;",
      "proxy_set_header X-Email $moongate_header_x_email;",
      "proxy_set_header X-WEBAUTH-USER $moongate_header_x_webauth_user;",
      "proxy_set_header Remote-User $moongate_user;", "proxy_set_header X_Login $moongate_header_x_login;",
    ] {
      #expect(text.count { $0 == line } == 1, "\(line)")
    }
    // The line that removed the header would now compete with the one that sets it.
    #expect(!text.contains("proxy_set_header X-WEBAUTH-USER \"\";"))
    #expect(text.contains("proxy_set_header X-WEBAUTH-NAME \"\";"))
    // Attack: nginx takes `X_Login` from no client, but `X-Login`, which a service may read as the same.
    #expect(text.contains("proxy_set_header X-Login \"\";"))
    #expect(!text.contains("proxy_set_header X-Email \"\";"))
  }

  /// Attack: a client sends the header itself, in a spelling that the service reads as the same.
  @Test func everyProxyRemovesEveryNameOfClients() {
    let names = ["X-Email", "X-Auth-User"]
    let caddy = Self.lines(Self.configuration(.caddy, names: names).text)
    for spelling in ["X-Email", "X_Email", "X-Auth-User", "X_Auth_User", "X-Auth_User", "X_Auth-User"] {
      #expect(caddy.contains("request_header -\(spelling)"))
    }
    #expect(caddy.count { $0 == "X-Email" } == 1)
    let traefik = Self.lines(Self.configuration(.traefik, names: names).text)
    #expect(traefik.contains("x[^a-z0-9]email|\\") && traefik.contains("x[^a-z0-9]auth[^a-z0-9]user|\\"))
    let envoy = Self.lines(Self.configuration(.envoy, names: names).text)
    #expect(envoy.contains("\"^x[^a-z0-9]auth[^a-z0-9]user$\",") && envoy.contains("- { exact: x-auth-user }"))
    let haproxy = Self.lines(Self.configuration(.haproxy, names: names).text)
    #expect(haproxy.contains("http-request del-header ^x[^a-z0-9]auth[^a-z0-9]user$ -m reg"))
    #expect(haproxy.contains("\"X-Auth-User\","))
  }

  /// Names that the templates remove already get no second line.
  @Test func reservedNamesAreRemovedAlready() {
    let names = ["X-WEBAUTH-USER", "X-Forwarded-User", "X-Remote-User"]
    let caddy = Self.lines(Self.configuration(.caddy, names: names).text)
    for name in names { #expect(!caddy.contains("request_header -\(name)") && caddy.contains(name)) }
    #expect(!Self.configuration(.haproxy, names: names).text.contains("^x[^a-z0-9]webauth[^a-z0-9]user"))
    // Traefik itself sends some X-Forwarded-*, so its expression names single ones.
    #expect(
      Self.configuration(.traefik, names: ["X-Forwarded-Login"]).text.contains("x[^a-z0-9]forwarded[^a-z0-9]login|"))
  }

  /// Without `identity.basic` and `bearer`, no proxy takes an Authorization from an answer. Traefik always does.
  @Test func authorizationIsReplacedOnlyIfARouteStatesOne() {
    let marks: [(Proxy, String)] = [
      (.nginx, "$upstream_http_authorization"), (.caddy, "X-Moongate-Credentials"),
      (.envoy, "- { exact: authorization }\n                    - { exact: x-moongate-assertion }"),
      (.haproxy, "told.authorization"),
    ]
    for (proxy, mark) in marks {
      #expect(!Self.configuration(proxy).text.contains(mark), "\(proxy)")
      #expect(Self.configuration(proxy, bearer: "reports").text.contains(mark), "\(proxy)")
    }
    var basic = Self.route { _ in }
    basic.identity.basic = ServiceIdentity.Basic(user: IdentityTemplate([.email]), password: SecretText("opensesame"))
    let text = ForwardAuthConfiguration(.nginx, RouteTable(routes: [basic]), Self.gateway).text
    #expect(text.contains("$upstream_http_authorization") && !text.contains("opensesame"))
  }

  /// Attack on ourselves: a password of `identity.basic` in the page that nginx shows for a refusal.
  @Test func nginxHidesTheAuthorizationOfAnswers() {
    #expect(Self.lines(Self.configuration(.nginx).text).contains("proxy_hide_header Authorization;"))
  }

  @Test func addressesAreThoseOfTheGateway() {
    var gateway = GatewaySettings.test(publicURL: PublicURL(isSecure: true, host: "id.a-b.example", port: 443))
    gateway.listen = ListenAddress(host: "0.0.0.0", port: 9090)
    for proxy in Proxy.allCases {
      let text = Self.configuration(proxy, gateway).text
      #expect(!text.contains("8080") && !text.contains("example.com") && !text.contains("0.0.0.0:9090"), "\(proxy)")
    }
    #expect(Self.configuration(.nginx, gateway).text.contains("server 127.0.0.1:9090;"))
    #expect(Self.configuration(.nginx, gateway).text.contains("\"~^id\\.a-b\\.example/\\.well-known/"))
    #expect(Self.configuration(.envoy, gateway).text.contains("regex: \"id\\\\.a-b\\\\.example(:[0-9]+)?\""))
    gateway.listen = ListenAddress(host: "2001:db8::1", port: 9090)
    #expect(Self.configuration(.envoy, gateway).text.contains("{ address: \"2001:db8::1\", port_value: 9090 }"))
    #expect(Self.configuration(.haproxy, gateway).text.contains("http://[2001:db8::1]:9090/auth/forward/haproxy"))
  }

  /// Attack on ourselves: a name that means something in the language of a configuration.
  @Test(arguments: ["X-$host", "X'Name", "X|Name", "X.Name", "X`Name"]) func nameWithSpecialCharactersIsRefused(
    _ name: String
  ) {
    #expect(Self.configuration(.nginx, names: ["X-Email", name]).unwritable == name)
    #expect(Self.configuration(.nginx, names: ["X-Email", "X_Name1"]).unwritable == nil)
  }

  @Test func namesThatDifferInCaseAreOne() {
    let text = Self.lines(Self.configuration(.caddy, names: ["X-Email", "x-email", "remote-user"]).text)
    #expect(text.count { $0.lowercased() == "x-email" } == 1)
    #expect(text.count { $0.lowercased() == "remote-user" } == 1)
  }

  @Test(arguments: [
    ("X", ["X"]), ("X-A", ["X-A", "X_A"]), ("X_A-B", ["X-A-B", "X-A_B", "X_A-B", "X_A_B"]),
  ]) func spellingsAreAllCombinations(_ name: String, _ all: [String]) {
    #expect(Set(ForwardAuthConfiguration.spellings(name)) == Set(all))
  }
}
