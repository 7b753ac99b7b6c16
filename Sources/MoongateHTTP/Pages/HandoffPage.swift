import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateProxy
import MoongateSDK

/// `/auth/handoff`: extends a sign-in to a further root domain (`domains` in gateway.lua), using only redirects.
///
/// ```
/// https://app.example.org/auth/handoff?return_to=/x                 begin: gives the browser a nonce
///   https://auth.example.com/auth/handoff?return_to=…&challenge=…   issue: after a sign-in, if necessary
///     https://app.example.org/auth/handoff?code=…                   redeem: gives the browser a token for example.org
///       https://app.example.org/x
/// ```
///
/// Attacks: login CSRF, where a victim's browser receives an attacker's code (it lacks the attacker's nonce, and
/// `__Host-` prevents neighbouring subdomains from setting one); an open redirect (codes are issued only for hosts of
/// routes, and the target is sealed in the code); a leaked code (it is valid once, for 30 s, in one browser and at one
/// origin).
struct HandoffPage: Sendable {
  static let path = "/auth/handoff"
  private static let cookiesMissing =
    "Your browser did not send this site's cookie. Allow cookies for this site and open the page again."

  let driver: FlowDriver

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, Self.path, servesAllDomains: true) { exchange throws(Refusal) in
        // A HEAD request must not use up the code.
        guard exchange.request.method == .get else { throw exchange.refusal(.methodNotAllowed) }
        let query = try exchange.query()
        guard let domain = exchange.gateway.furtherDomain(of: exchange.client.host?.name) else {
          return try await issue(query, exchange)
        }
        let origin = try origin(exchange)
        if let code = query["code"] { return try await redeem(code, at: origin, of: domain, exchange) }
        return begin(at: origin, query, exchange)
      }
    ]
  }

  /// The origin of the request.
  /// - Throws: if no code can be issued for it.
  private func origin(_ exchange: Exchange) throws(Refusal) -> String {
    guard let host = exchange.client.host?.name, exchange.generation.routes.routes.contains(where: { $0.host == host })
    else {
      throw exchange.refusal(.notFound, reason: "no route names this host: add `host` to its routes in routes.lua")
    }
    let origin = exchange.gateway.siblingOrigin(host).description
    guard exchange.client.origin == origin else {
      throw exchange.refusal(
        .handoffFailed,
        reason:
          "asked for at \(exchange.client.origin ?? "no origin"), where \(origin) is expected: is X-Forwarded-Proto set?"
      )
    }
    return origin
  }

  // MARK: the further domain

  /// Gives the browser a nonce, unless it has one. Several tabs that open at once share it.
  private func begin(at origin: String, _ query: FormFields, _ exchange: Exchange) -> Response {
    let nonce = exchange.credentials.browser ?? SecretText(Base64URL.encode(driver.random.bytes(32)))
    let asked = query["return_to"].flatMap { $0.hasPrefix("/") ? exchange.targets.accept(origin + $0) : nil }
    let address = FormFields.address(
      exchange.gateway.publicURL.description + Self.path,
      [
        "return_to": asked ?? origin + "/", "challenge": Base64URL.encode(TokenHash(of: nonce.reveal().utf8).bytes),
        "flow": query["flow"],
      ])
    return leave(to: address, exchange.cookies.beginHandoff(nonce) + exchange.identifyFrame(nonce), exchange)
  }

  private func redeem(_ code: String, at origin: String, of domain: String, _ exchange: Exchange) async throws(Refusal)
    -> Response
  {
    let old = try await driver.session(exchange)?.session
    let redeemer = HandoffService.Redeemer(
      origin: origin, domain: domain, nonce: exchange.credentials.browserHash, address: exchange.client.address,
      decision: exchange.decision, old: old
    )
    let result = try await exchange.mappingFaults { () async throws(StoreFault) in
      try await driver.engine.handoffs.redeem(code, by: redeemer)
    }
    switch result {
    case .success(let redeemed):
      let cookies = exchange.cookies
      return leave(
        to: origin + redeemed.target, cookies.signIn(redeemed.token.secret, for: redeemed.cookieLifetime), exchange)
    case .failure(let refusal):
      let isCookieless = refusal == .otherBrowser && exchange.credentials.browser == nil
      throw exchange.refusal(.handoffFailed, detail: isCookieless ? Self.cookiesMissing : nil, reason: refusal.rawValue)
    }
  }

  // MARK: public_url

  private func issue(_ query: FormFields, _ exchange: Exchange) async throws(Refusal) -> Response {
    guard exchange.gateway.domains.count > 1 else {
      throw exchange.refusal(.notFound, reason: "gateway.lua names no further root domain")
    }
    guard let challenge = query["challenge"], CarriedCredentials.isToken(challenge),
      let hash = Base64URL.decode(challenge), hash.count == 32,
      let (origin, target) = destination(query["return_to"], exchange)
    else { throw exchange.refusal(.badRequest, reason: "no handoff begins with this address") }
    guard let session = try await driver.session(exchange)?.session else {
      return try signIn(before: query, challenge, origin, target, exchange)
    }
    let code: SecretText?
    do {
      code = try driver.engine.handoffs.issue(
        for: session, to: origin, target: target, challenge: TokenHash(bytes: hash))
    } catch {
      throw exchange.refusal(.policyError, fault: "the code cannot be sealed: \(error)")
    }
    guard let code else {
      throw exchange.refusal(.handoffFailed, reason: "a session of a further domain makes no others")
    }
    return leave(to: FormFields.address(origin + Self.path, ["code": code.reveal()]), [], exchange)
  }

  /// The origin and path of the target: an absolute URL at a host of a route on a further domain.
  private func destination(_ text: String?, _ exchange: Exchange) -> (origin: String, target: String)? {
    guard let address = exchange.targets.accept(text).flatMap({ WebAddress($0) }),
      exchange.gateway.furtherDomain(of: address.origin.host) != nil,
      exchange.generation.routes.routes.contains(where: { $0.host == address.origin.host }),
      address.origin == exchange.gateway.siblingOrigin(address.origin.host)
    else { return nil }
    return (address.origin.description, address.tail.hasPrefix("/") ? String(address.tail) : "/" + address.tail)
  }

  /// Redirects to the sign-in page, which returns here. Attack on a user's patience: a browser without cookies would be
  /// asked to sign in again and again. If it returns without a session, an error is shown.
  private func signIn(
    before query: FormFields, _ challenge: String, _ origin: String, _ target: String, _ exchange: Exchange
  ) throws(Refusal) -> Response {
    guard query["signed_in"] == nil else {
      throw exchange.refusal(
        .handoffFailed, detail: Self.cookiesMissing, reason: "signed in, and came back without a session")
    }
    guard exchange.request.opensPage else { throw exchange.refusal(.unauthenticated) }
    let back = { (target: String) in
      FormFields.address(Self.path, ["return_to": origin + target, "challenge": challenge, "signed_in": "true"])
    }
    let whole = back(target)
    // A URL that is too long would be ignored after the sign-in. The first page of the site is better than the wrong
    // site.
    let returnTo = whole.utf8.count <= RedirectTargets.longest ? whole : back("/")
    return leave(to: FormFields.address(PagePath.signIn, ["flow": query["flow"], "return_to": returnTo]), [], exchange)
  }

  /// A redirect whose page cannot run scripts. Only a redirect on the way to a route with `frames` can be in a frame.
  private func leave(to address: String, _ cookies: [String], _ exchange: Exchange) -> Response {
    var response = Response.seeOther(address)
    response.restrictPage("default-src 'none'; base-uri 'none'", in: exchange.frames)
    response.setCookies(cookies)
    return response
  }
}
