import MoongateCore
import MoongateSDK

/// The configuration with which a proxy asks the gateway about each request (forward-auth), for the identity headers
/// that routes name.
///
/// The templates are the blocks of the guides, which are complete for the usual headers. Each further header is added
/// to the lines that remove headers of clients, and to those that copy headers of the gateway's answer.
struct ForwardAuthConfiguration {
  /// A proxy that can ask. The raw value is its name on the command line.
  enum Proxy: String, CaseIterable {
    case nginx, traefik, caddy, envoy, haproxy
  }

  /// A line of a template, without its indentation, and the lines in its place.
  struct Edit: Equatable {
    let line: String
    let lines: [String]

    init(_ line: String, _ lines: [String]) {
      self.line = line
      self.lines = lines
    }

    static func after(_ line: String, _ lines: [String]) -> Edit { Edit(line, [line] + lines) }
    static func before(_ line: String, _ lines: [String]) -> Edit { Edit(line, lines + [line]) }
  }

  let proxy: Proxy
  /// The headers in addition to the usual ones.
  let names: [String]
  /// Whether a route states an Authorization (`identity.basic`, `bearer`). The client's is then replaced.
  let replacesAuthorization: Bool
  /// Where the proxy reaches the gateway.
  let listen: ListenAddress
  /// The host of `public_url`.
  let host: String

  init(_ proxy: Proxy, _ routes: RouteTable, _ gateway: GatewaySettings) {
    self.proxy = proxy
    names = Array(routes.identityHeaderNames.dropFirst(ServiceIdentity.Statement.allCases.count))
    replacesAuthorization = routes.routes.contains { $0.identity.basic != nil || $0.bearer != nil }
    let isEvery = ["0.0.0.0", "::", "[::]"].contains(gateway.listen.host)
    listen = isEvery ? ListenAddress(host: "127.0.0.1", port: gateway.listen.port) : gateway.listen
    host = gateway.publicURL.host
  }

  /// The header that cannot be written in the configuration of every proxy; nil if all can.
  ///
  /// Attack on ourselves: `$`, `'` and `|`, which RFC 9110 permits in names, mean something in these languages.
  var unwritable: String? { names.first { $0.wholeMatch(of: /[A-Za-z0-9_\-]+/) == nil } }

  /// The files, one after the other. The first line of each names it.
  var text: String { files.map(filled).joined(separator: "\n") }

  private var files: [[UInt8]] {
    switch proxy {
    case .nginx: [PackageResources.proxy_nginx_conf]
    case .traefik: [PackageResources.proxy_traefik_yml, PackageResources.proxy_moongate_yml]
    case .caddy: [PackageResources.proxy_Caddyfile]
    case .envoy: [PackageResources.proxy_envoy_yaml]
    case .haproxy: [PackageResources.proxy_haproxy_cfg, PackageResources.proxy_moongate_lua]
    }
  }

  private func filled(_ file: [UInt8]) -> String {
    let edits = Dictionary(edits.map { ($0.line, $0.lines) }) { $1 }
    let lines = String(decoding: file, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
    let edited = lines.flatMap { line -> [String] in
      let indentation = line.prefix { $0 == " " || $0 == "\t" }
      return edits[String(line.dropFirst(indentation.count))]?.map { indentation + $0 } ?? [String(line)]
    }
    return edited.map(addressed).joined(separator: "\n")
  }

  /// The line with the addresses of this gateway in place of those in the guide.
  private func addressed(_ line: String) -> String {
    let bare = IPAddressBytes.withoutBrackets(listen.host)
    let socket = bare.contains(":") ? "\"\(bare)\"" : bare
    return line.replacing("127.0.0.1:8080", with: "\(listen)")
      .replacing("address: 127.0.0.1, port_value: 8080", with: "address: \(socket), port_value: \(listen.port)")
      .replacing("auth.example.com", with: host)
      .replacing("auth\\.example\\.com", with: host.replacing(".", with: "\\."))
      .replacing("auth\\\\.example\\\\.com", with: host.replacing(".", with: "\\\\."))
  }

  /// The changes of the templates.
  var edits: [Edit] {
    let all =
      switch proxy {
      case .nginx: nginx
      case .traefik: traefik
      case .caddy: caddy
      case .envoy: envoy
      case .haproxy: haproxy
      }
    return all.filter { $0.lines != [$0.line] }
  }

  // MARK: names

  /// The name with one character in place of all that are neither letters nor digits, as careless services read it.
  private static func folded(_ name: String, with other: String) -> String {
    name.lowercased().map { $0.isLetter || $0.isNumber ? String($0) : other }.joined()
  }

  /// A pattern of the name in every spelling, in the syntax that the proxies have in common with Lua.
  private static func pattern(_ name: String) -> String { folded(name, with: "[^a-z0-9]") }

  /// The headers that no template removes from requests of clients.
  private var unremoved: [String] { names.filter { !ReservedHeaders.contains($0) } }

  /// The name with `-` and `_` in all combinations, for a proxy that compares names without patterns.
  static func spellings(_ name: String) -> [String] {
    name.split(omittingEmptySubsequences: false) { $0 == "-" || $0 == "_" }.reduce(into: [String]()) { all, part in
      all = all.isEmpty ? [String(part)] : all.flatMap { ["\($0)-\(part)", "\($0)_\(part)"] }
    }
  }
}

/// The changes for each proxy.
extension ForwardAuthConfiguration {
  /// nginx drops names with `_` and the like itself, and sends no empty header.
  private var nginx: [Edit] {
    let variable = { (name: String) in "$moongate_header_\(Self.folded(name, with: "_"))" }
    // These lines remove a header that no route names.
    let removals = names.map { Edit("proxy_set_header \(Self.spelled($0)) \"\";", []) }
    let authorization = "map $moongate_takes $moongate_authorization { \"\" $http_authorization; default \"\"; }"
    let takes = "auth_request_set $moongate_takes $upstream_http_x_moongate_authorization;"
    let credentials = [
      Edit(
        authorization,
        [
          "map $moongate_takes $moongate_passed_on { \"\" $http_authorization; default \"\"; }",
          "# `identity.basic` and `bearer` replace it.",
          "map $moongate_credentials $moongate_authorization { \"\" $moongate_passed_on; default $moongate_credentials; }",
        ]),
      .after(takes, ["auth_request_set $moongate_credentials $upstream_http_authorization;"]),
    ]
    return removals + (replacesAuthorization ? credentials : []) + [
      .after("proxy_hide_header Remote-Groups;", names.map { "proxy_hide_header \($0);" }),
      .after(
        "auth_request_set $moongate_groups $upstream_http_remote_groups;",
        names.map { "auth_request_set \(variable($0)) $upstream_http_\(Self.folded($0, with: "_"));" }),
      .after(
        "proxy_set_header Remote-Groups $moongate_groups;",
        names.map { "proxy_set_header \($0) \(variable($0));" } + hyphenated.map { "proxy_set_header \($0) \"\";" }),
    ]
  }

  /// Attack: a route names `X_User`, which nginx itself takes from no client, and the client sends `X-User`.
  private var hyphenated: [String] {
    names.map { $0.replacing("_", with: "-") }.filter { name in
      !names.contains { $0.lowercased() == name.lowercased() }
    }
  }

  /// The name as the template of nginx writes it, if it has a line that removes the header.
  private static func spelled(_ name: String) -> String {
    let known = String(decoding: PackageResources.proxy_nginx_conf, as: UTF8.self).matches(
      of: /proxy_set_header ([A-Za-z0-9-]+) "";/)
    return known.map { String($0.1) }.first { $0.lowercased() == name.lowercased() } ?? name
  }

  /// Traefik removes from requests what it may copy from answers. It copies every Authorization.
  private var traefik: [Edit] {
    let covered = ["remote-", "x-moongate-", "x-original-", "x-webauth-"]
    let added = names.filter { name in !covered.contains { Self.folded(name, with: "-").hasPrefix($0) } }
    return [
      .before(
        "forwarded|true[^a-z0-9]client[^a-z0-9]ip|proxy|moongate[^a-z0-9]device|http2[^a-z0-9]settings)$\"",
        added.map { "\(Self.pattern($0))|\\" })
    ]
  }

  /// Caddy compares names, or parts of them, without patterns.
  private var caddy: [Edit] {
    let credentials = [
      "# `identity.basic` and `bearer` replace it.",
      "@credentials header_regexp X-Moongate-Credentials .",
      "request_header @credentials Authorization {header.X-Moongate-Credentials}",
      "request_header -X-Moongate-Credentials",
    ]
    return [
      .after(
        "request_header -*Settings", unremoved.flatMap { Self.spellings($0).map { "request_header -\($0)" } }),
      .after("Remote-Groups", names),
      .after(
        "X-Moongate-Authorization", replacesAuthorization ? ["Authorization>X-Moongate-Credentials"] : []),
      .after("request_header @own -Authorization", replacesAuthorization ? credentials : []),
    ]
  }

  private var envoy: [Edit] {
    let copied = names.map { $0.lowercased() } + (replacesAuthorization ? ["authorization"] : [])
    return [
      .after("\"^http2[^a-z0-9]settings$\",", unremoved.map { "\"^\(Self.pattern($0))$\"," }),
      .after("- { exact: remote-groups }", copied.map { "- { exact: \($0) }" }),
    ]
  }

  private var haproxy: [Edit] {
    let credentials = [
      "-- `identity.basic` and `bearer` replace it.",
      "if told.authorization then txn.http:req_set_header(\"Authorization\", told.authorization[0]) end",
    ]
    return [
      .after(
        "http-request del-header ^(forwarded|true[^a-z0-9]client[^a-z0-9]ip|proxy|http2[^a-z0-9]settings)$ -m reg",
        unremoved.map { "http-request del-header ^\(Self.pattern($0))$ -m reg" }),
      .after(
        "\"Remote-User\", \"Remote-Email\", \"Remote-Phone\", \"Remote-Name\", \"Remote-Groups\", \"X-Moongate-Assertion\",",
        names.map { "\"\($0)\"," }),
      .after(
        "if told[\"x-moongate-authorization\"] then txn.http:req_del_header(\"Authorization\") end",
        replacesAuthorization ? credentials : []),
    ]
  }
}
