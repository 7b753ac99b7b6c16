import MoongateCore

/// Reads where a route sends its requests: `to`, `http2` and `upstream_tls`.
struct UpstreamReader {
  /// Nil if gateway.lua could not be read.
  let gateway: GatewaySettings?
  let secrets: SecretReader
  let problems: Problems

  /// - Returns: the upstreams, and the path in `to`, which all of them share.
  func read(_ reader: TableReader) -> (upstreams: [Upstream], base: String) {
    let path = reader.path("to")
    let negotiatesHTTP2 = reader.flag("http2") ?? false
    let trust = reader.explicitValue("upstream_tls").flatMap {
      UpstreamTrustReader(secrets: secrets, problems: problems).read($0, reader.path("upstream_tls"))
    }
    var upstreams: [Upstream] = []
    var shared: String?
    for item in texts(reader, path) {
      guard let (found, base) = read(item, path) else { continue }
      var upstream = found
      if let shared, base != shared {
        problems.add(
          item.node.location, path,
          "\"\(item.text)\" has another path than the upstream before it: all upstreams of a route have the same one")
      }
      shared = shared ?? base
      if !upstream.isSecure, !upstream.usesHTTP2, negotiatesHTTP2 {
        problems.add(
          item.node.location, path,
          "\"\(item.text)\" is not https://, where HTTP/2 is negotiated: for HTTP/2 without TLS write \"h2c://…\" and leave `http2` out"
        )
      }
      // Attack: a certificate is demanded, and the requests go to the service in the clear.
      if !upstream.isSecure, reader.explicitValue("upstream_tls") != nil {
        problems.add(
          item.node.location, path, "\"\(item.text)\" is not https://, so `upstream_tls` would not protect it")
      }
      upstream.usesHTTP2 = upstream.usesHTTP2 || negotiatesHTTP2
      upstream.trust = trust
      warnOfOwnAddress(upstream, item.text, item.node, path)
      upstreams.append(upstream)
    }
    return (upstreams, shared ?? "")
  }

  private func texts(_ reader: TableReader, _ path: String) -> [(text: String, node: LuaNode)] {
    guard let node = reader.take("to") else { return [] }
    guard case .table(let table) = node.value else {
      return Field.text(node, path, problems).map { [($0, node)] } ?? []
    }
    if table.isEmpty { problems.add(node.location, path, "must name at least one upstream") }
    return Field.texts(node, path, problems) ?? []
  }

  private func read(_ item: (text: String, node: LuaNode), _ path: String) -> (upstream: Upstream, base: String)? {
    func refuse(_ why: String) -> (upstream: Upstream, base: String)? {
      problems.add(item.node.location, path, "\"\(item.text)\" \(why)")
      return nil
    }
    let scheme = "h2c://"
    let knowsHTTP2 = item.text.hasPrefix(scheme)
    guard let address = WebAddress(knowsHTTP2 ? "http://" + item.text.dropFirst(scheme.count) : item.text) else {
      return refuse(
        "is not a valid upstream, such as \"http://127.0.0.1:3000\": http, https or h2c, a host, a port, and perhaps a path"
      )
    }
    guard !address.tail.contains("?"), !address.tail.contains("#") else {
      return refuse("must have no query and no fragment: those of each request are sent on; remove all from ? or # on")
    }
    let base = address.tail.hasSuffix("/") ? address.tail.dropLast() : address.tail
    guard base.isEmpty || (Self.isPlain(String(base)) && !base.hasSuffix("/")) else {
      return refuse(
        "has a path that programs can read differently: write it without empty segments, `.`, `..`, ; and \\, and percent-encode all but ASCII"
      )
    }
    var upstream = Upstream(
      isSecure: address.origin.isSecure, host: address.origin.host, port: address.origin.port)
    upstream.usesHTTP2 = knowsHTTP2
    return (upstream, String(base))
  }

  /// Whether all programs read the path in the same way, and it can be sent as it is: absolute, in normal form, without
  /// parameters.
  static func isPlain(_ path: String) -> Bool {
    let bytes = Array(path.utf8)
    return path.wholeMatch(of: /\/[A-Za-z0-9\/._~!$&'()*+,=:@%\-]*/) != nil && RequestPath(bytes.span) != nil
  }
}
