import Crypto
import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

/// Who may talk to the admin listener: whoever has the token, where gateway.lua names one; otherwise programs on this machine and its
/// own pages.
struct AdminGuard: Sendable {
  /// Those that a load balancer asks, which has no token.
  private static let open: Set<Substring> = ["/healthz", "/readyz"]

  let listen: ListenAddress
  /// The token of the configuration that the listener began with.
  let startToken: SecretText?

  /// - Throws: 401 `unauthenticated` without the token; 403 `denied` or `origin_refused` for another site's page.
  func check(_ exchange: Exchange) throws(Refusal) {
    guard let host = exchange.request.head.authority.flatMap({ HostName($0) }), token(exchange) != nil || isOurs(host) else {
      throw exchange.refusal(.denied, detail: "The admin listener is not known by this name.")
    }
    guard lets(exchange) || Self.open.contains((exchange.request.head.path ?? "").prefix { $0 != "?" }) else {
      throw exchange.refusal(.unauthenticated, detail: "The admin listener asks for the token that gateway.lua names, as Authorization: Bearer.")
    }
    switch exchange.request.method {
    case .get, .head, .options: return
    default: break
    }
    // Programs send no Origin; a browser's must be that of the page that we served.
    guard exchange.credentials.origins.allSatisfy({ $0 == "http://\(host.authority)" }) else { throw exchange.refusal(.originRefused) }
  }

  /// Whether the request carries the token, or none is asked for.
  func lets(_ exchange: Exchange) -> Bool {
    guard let token = token(exchange) else { return listen.isLoopback }
    let values = exchange.request.headers[values: .authorization]
    guard values.count == 1, values[0].lowercased().hasPrefix("bearer ") else { return false }
    // Attack: a token that is found byte by byte, by how long the answer takes. Of hashes, neither bytes nor length say anything.
    return constantTimeEquals(Array(SHA256.hash(data: Array(values[0].utf8.dropFirst(7)))), Array(SHA256.hash(data: Array(token.reveal().utf8))))
  }

  /// The token of now.
  ///
  /// Attack: a configuration that takes the token back, and leaves an open listener that goes on until the next start. What other machines
  /// reach keeps the token that it began with.
  private func token(_ exchange: Exchange) -> SecretText? { exchange.gateway.adminToken ?? (listen.isLoopback ? nil : startToken) }

  /// Attack: DNS rebinding. A page of `evil.example` makes its name point at 127.0.0.1 and reads the outbox as its own site.
  /// So the host that is asked for must be an address, which no one can rebind, `localhost`, or the name that we listen on. A page has no
  /// token: where one is asked for, every name will do.
  private func isOurs(_ host: HostName) -> Bool {
    host.name == "localhost" || host.name == listen.host.lowercased() || host.name.hasPrefix("[") || IPAddressText.parse(Array(host.name.utf8)) != nil
  }
}
