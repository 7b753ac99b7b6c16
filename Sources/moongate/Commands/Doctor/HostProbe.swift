import Foundation
import MoongateCore
import MoongateSDK

/// A request with two hosts: its target is a URL of public_url, and its Host names another host (RFC 9112 section
/// 3.2.2).
///
/// Attack: a proxy sends the request to the services of the first host, and lets the gateway judge the second one,
/// whose routes may be open.
struct HostProbe: Equatable {
  /// A host for names that do not exist (RFC 2606), for routes of every host.
  static let otherHost = "moongate-doctor.invalid"

  /// The host in Host.
  let host: String
  /// The percent-encoded path of a page that needs a session at `host`, so that the gateway redirects to sign-in and
  /// names the host that it judged.
  let path: String

  init(host: String, path: String) {
    self.host = host
    self.path = path
  }

  /// - Returns: nil if no route of another host than that of public_url needs a session.
  init?(_ routes: RouteTable, publicURL: PublicURL) {
    let matcher = RouteMatcher(routes)
    let get = Array("GET".utf8)
    for route in routes.routes where route.needsSession {
      let host = route.host ?? Self.otherHost
      let path = Self.path(of: route.path)
      guard host != publicURL.host, let index = matcher.match(host: host, path: path.span, method: get.span),
        routes.routes[index].needsSession
      else { continue }
      let names = String(decoding: path, as: UTF8.self).split(separator: "/", omittingEmptySubsequences: false)
      self.init(host: host, path: names.map { PercentEncoding.encode(String($0)) }.joined(separator: "/"))
      return
    }
    return nil
  }

  /// A path that the pattern matches.
  private static func path(of pattern: PathPattern) -> [UInt8] {
    let segments = pattern.segments.compactMap { segment -> [UInt8]? in
      guard case .glob(let bytes) = segment else { return nil }
      return bytes.map { $0 == UInt8(ascii: "*") ? UInt8(ascii: "x") : $0 }
    }
    return segments.isEmpty ? [UInt8(ascii: "/")] : segments.flatMap { [UInt8(ascii: "/")] + $0 }
  }

  /// The head of the request.
  func head(for url: PublicURL) -> String {
    """
    GET \(url)\(path) HTTP/1.1\r
    Host: \(host)\r
    User-Agent: moongate-doctor\r
    Accept: text/html\r
    Sec-Fetch-Mode: navigate\r
    Connection: close\r
    \r

    """
  }

  /// Whether the gateway judged `host`: its redirect leads there, or back to there.
  /// - Parameter head: the head of the answer.
  func isBelieved(in head: String) -> Bool {
    let lines = head.split(separator: "\r\n").dropFirst()
    guard let line = lines.first(where: { $0.lowercased().hasPrefix("location:") }),
      let target = URLComponents(string: line.dropFirst(9).trimmingCharacters(in: .whitespaces))
    else { return false }
    let back = target.queryItems?.first { $0.name == "return_to" }?.value.flatMap { URLComponents(string: $0) }
    return target.host == host || back?.host == host
  }
}

extension Route {
  /// Whether every client needs a session, also one that this machine's network contains (`allow.networks`).
  fileprivate var needsSession: Bool { !isOpen && openNetworks.isEmpty }
}
