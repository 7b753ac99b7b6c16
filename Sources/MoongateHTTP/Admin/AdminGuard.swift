import Crypto
import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

/// Who may talk to the admin listener: programs that have one of its tokens, where gateway.lua names some; otherwise
/// programs on this machine and its own pages.
struct AdminGuard: Sendable {
  /// Those that a load balancer asks, which has no token.
  private static let open: Set<Substring> = ["/healthz", "/readyz"]

  let listen: ListenAddress
  /// The tokens of the configuration that the listener began with.
  let startTokens: [AdminToken]
  let failures: AdminTokenFailures

  /// - Throws: 401 `unauthenticated` without a token; 429 `rate_limited` after too many wrong ones; 403 `denied` for
  ///   what the token's role does not allow; 403 `denied` or `origin_refused` for another site's page.
  func check(_ exchange: Exchange) throws(Refusal) {
    let tokens = tokens(exchange)
    guard let host = exchange.request.head.authority.flatMap({ HostName($0) }), !tokens.isEmpty || isOurs(host) else {
      throw exchange.refusal(.denied, detail: "The admin listener is not known by this name.")
    }
    let path = (exchange.request.head.path ?? "").prefix { $0 != "?" }
    if !Self.open.contains(path) { try demandToken(tokens, path, exchange) }
    if exchange.isSafe { return }
    // Programs send no Origin; a browser's must be that of the page that we served.
    guard exchange.credentials.origins.allSatisfy({ $0 == "http://\(host.authority)" }) else {
      throw exchange.refusal(.originRefused)
    }
  }

  /// Whether the request carries a token, or none is asked for.
  func lets(_ exchange: Exchange) -> Bool {
    let tokens = tokens(exchange)
    return tokens.isEmpty ? listen.isLoopback : holder(tokens, exchange) != nil
  }

  /// Who acts by this request.
  func identity(_ exchange: Exchange) -> OperatorIdentity {
    OperatorIdentity(
      name: holder(tokens(exchange), exchange)?.name, tool: "admin listener",
      address: exchange.client.address.description)
  }

  private func demandToken(_ tokens: [AdminToken], _ path: Substring, _ exchange: Exchange) throws(Refusal) {
    guard !tokens.isEmpty else {
      if listen.isLoopback { return }
      throw unauthenticated(exchange)
    }
    // Attack: a program that tries token after token. Beyond a bound its address learns nothing any more, not even that
    // one was right.
    if let wait = failures.wait(exchange.client.address) {
      throw exchange.refusal(.rateLimited, detail: "Too many wrong tokens came from this address.", retryAfter: wait)
    }
    guard let token = holder(tokens, exchange) else {
      if !exchange.request.headers[values: .authorization].isEmpty { failures.count(exchange.client.address) }
      throw unauthenticated(exchange)
    }
    guard token.role == .act || (exchange.isSafe && !Self.needsAct(path)) else {
      throw exchange.refusal(
        .denied, detail: "The token \(token.name) has the role `read`: this call needs one with the role `act`.")
    }
  }

  /// Attack: a dashboard's token, which is in many hands, and reads the code of somebody's sign-in from the outbox, or
  /// everything about a person.
  private static func needsAct(_ path: Substring) -> Bool {
    path == "/outbox" || (path.hasPrefix("/accounts/") && path.hasSuffix("/export"))
  }

  private func unauthenticated(_ exchange: Exchange) -> Refusal {
    exchange.refusal(
      .unauthenticated, detail: "The admin listener asks for a token that gateway.lua names, as Authorization: Bearer.")
  }

  /// The token that the request carries.
  private func holder(_ tokens: [AdminToken], _ exchange: Exchange) -> AdminToken? {
    let values = exchange.request.headers[values: .authorization]
    guard values.count == 1, values[0].lowercased().hasPrefix("bearer ") else { return nil }
    // Attack: a token that is found byte by byte, by how long the answer takes. Of hashes, neither bytes nor length say
    // anything; and each of the tokens is compared, whichever it is.
    let given = Array(SHA256.hash(data: Array(values[0].utf8.dropFirst(7))))
    var found: AdminToken?
    for token in tokens where constantTimeEquals(given, Array(SHA256.hash(data: Array(token.secret.reveal().utf8)))) {
      found = found ?? token
    }
    return found
  }

  /// The tokens of now.
  ///
  /// Attack: a configuration that takes the tokens back, and leaves an open listener that goes on until the next start.
  /// What other machines reach keeps the tokens that it began with.
  private func tokens(_ exchange: Exchange) -> [AdminToken] {
    let now = exchange.gateway.allAdminTokens
    return now.isEmpty && !listen.isLoopback ? startTokens : now
  }

  /// Attack: DNS rebinding. A page of `evil.example` makes its name point at 127.0.0.1 and reads the outbox as its own
  /// site. So the host that is asked for must be an address, which no one can rebind, `localhost`, or the name that we
  /// listen on. A page has no token: where one is asked for, every name will do.
  private func isOurs(_ host: HostName) -> Bool {
    host.name == "localhost" || host.name == listen.host.lowercased() || host.name.hasPrefix("[")
      || IPAddressText.parse(Array(host.name.utf8)) != nil
  }
}

extension Exchange {
  /// Whether the method changes nothing (RFC 9110 section 9.2.1).
  fileprivate var isSafe: Bool {
    switch request.method {
    case .get, .head, .options: true
    default: false
    }
  }
}
