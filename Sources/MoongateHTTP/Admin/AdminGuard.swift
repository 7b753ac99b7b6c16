import Crypto
import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

/// Authorizes requests to the admin listener. If gateway.lua defines tokens, a request must carry one. Otherwise, only
/// programs on this machine and the listener's own pages have access.
struct AdminGuard: Sendable {
  /// Paths that need no token, for load balancers.
  private static let open: Set<Substring> = ["/healthz", "/readyz"]

  let listen: ListenAddress
  /// The tokens of the configuration with which the listener was started.
  let startTokens: [AdminToken]
  let failures: AdminTokenFailures

  /// - Throws: 401 `unauthenticated` without a token; 429 `rate_limited` after too many wrong ones; 403 `denied` for an
  ///   action that the token's role does not allow; 403 `denied` or `origin_refused` for pages of other sites.
  func check(_ exchange: Exchange) throws(Refusal) {
    let tokens = tokens(exchange)
    // RFC 9112 section 3.2.
    guard let authority = exchange.request.head.authority else {
      throw exchange.refusal(.badRequest, detail: "The request has no Host.")
    }
    guard let host = HostName(authority), !tokens.isEmpty || isOurs(host) else {
      throw exchange.refusal(.denied, detail: "The admin listener is not known by this name.")
    }
    let path = (exchange.request.head.path ?? "").prefix { $0 != "?" }
    if !Self.open.contains(path) { try demandToken(tokens, path, exchange) }
    if exchange.isSafe { return }
    // Programs send no Origin. A browser's Origin must be that of our own page.
    guard exchange.credentials.origins.allSatisfy({ $0 == "http://\(host.authority)" }) else {
      throw exchange.refusal(.originRefused)
    }
  }

  /// Whether the request carries a token, or none is required.
  func allows(_ exchange: Exchange) -> Bool {
    let tokens = tokens(exchange)
    return tokens.isEmpty ? listen.isLoopback : holder(tokens, exchange) != nil
  }

  /// The identity of the operator who sent the request: the name of the token, or, if no token is required, the name
  /// that the call gives.
  ///
  /// Attack: the holder of one token acts under another name. The token's own name is always recorded; the name in the
  /// call is recorded next to it.
  func identity(_ exchange: Exchange, claiming claimed: String? = nil) -> OperatorIdentity {
    let token = holder(tokens(exchange), exchange)?.name
    let claimed = claimed.flatMap { $0.isEmpty ? nil : $0 }
    return OperatorIdentity(
      name: token ?? claimed, tool: "admin listener", address: exchange.client.address.description,
      claimedName: token == nil ? nil : claimed)
  }

  private func demandToken(_ tokens: [AdminToken], _ path: Substring, _ exchange: Exchange) throws(Refusal) {
    guard !tokens.isEmpty else {
      if listen.isLoopback { return }
      throw unauthenticated(exchange)
    }
    // Attack: a program tries one token after another. Beyond a limit, its address gets no more answers, not even
    // whether a token was right.
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

  /// Attack: a dashboard's token, which many people have, reads the code of a user's sign-in from the outbox, or all
  /// data of a person.
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
    // Attack: a token is guessed byte by byte through response times. Hashes reveal neither the bytes nor the length of
    // a token, and every token is compared.
    let given = Array(SHA256.hash(data: Array(values[0].utf8.dropFirst(7))))
    var found: AdminToken?
    for token in tokens where constantTimeEquals(given, Array(SHA256.hash(data: Array(token.secret.reveal().utf8)))) {
      found = found ?? token
    }
    return found
  }

  /// The tokens that are currently valid.
  ///
  /// Attack: a configuration without tokens would leave a reachable listener open until the next restart. A listener
  /// that other hosts can reach therefore keeps its initial tokens.
  private func tokens(_ exchange: Exchange) -> [AdminToken] {
    let now = exchange.gateway.allAdminTokens
    return now.isEmpty && !listen.isLoopback ? startTokens : now
  }

  /// Attack: DNS rebinding. A page of `evil.example` points its name at 127.0.0.1 and reads the outbox as if it were
  /// its own site. Therefore, the requested host must be an IP address, which cannot be rebound, `localhost`, or the
  /// listener's own name. If tokens are required, every name is allowed, because such a page has no token.
  private func isOurs(_ host: HostName) -> Bool {
    host.name == "localhost" || host.name == listen.host.lowercased() || host.name.hasPrefix("[")
      || IPAddressText.parse(Array(host.name.utf8)) != nil
  }
}

extension Exchange {
  /// Whether the method is safe (RFC 9110, section 9.2.1).
  fileprivate var isSafe: Bool {
    switch request.method {
    case .get, .head, .options: true
    default: false
    }
  }
}
