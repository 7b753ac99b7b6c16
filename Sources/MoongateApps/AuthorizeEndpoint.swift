import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateHTTP
import MoongateSDK

/// `/auth/openid/authorize`: an app sends a user's browser here (RFC 6749 section 4.1.1).
struct AuthorizeEndpoint: Sendable {
  let reader: AuthorizationReader
  let pushed: PushedRequests
  let continuation: AppContinuation
  let random: any RandomSource

  /// The parameter that the gateway adds when it has set the cookie.
  private static let greeted = "greeted"

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, OpenIDPath.authorize) { exchange throws(Refusal) in
        // A HEAD request must not make a code.
        guard exchange.request.method == .get else { throw exchange.refusal(.methodNotAllowed) }
        return try await begin(try exchange.query(), exchange)
      },
      // A form of another site, to which browsers add no cookies. The same request by GET has them.
      Endpoint(.inbound, .post, OpenIDPath.authorize) { exchange throws(Refusal) in
        let fields = try await exchange.form()
        var names = AuthorizationReader.parameters
        if PushedRequests.isNamed(in: fields) {
          names = PushedRequests.parameters
        } else {
          let target = try reader.target(fields, exchange)
          do throws(OAuthError) { _ = try await reader.request(fields, for: target, exchange) } catch {
            return continuation.answers.send(error, to: target, exchange)
          }
        }
        // What was validated is short enough for an address.
        let query = names.compactMap { name in fields[name].map { (name, $0) } }
        guard query.allSatisfy({ $0.1.utf8.count <= PushedRequests.longest }) else {
          throw exchange.refusal(.badRequest, reason: "a parameter is too long")
        }
        return .seeOther(OpenIDPath.authorize + "?" + PercentEncoding.form(query))
      },
    ]
  }

  private func begin(_ fields: FormFields, _ exchange: Exchange) async throws(Refusal) -> Response {
    var request: AuthorizationRequest
    if PushedRequests.isNamed(in: fields) {
      if let response = greeting(fields, exchange) { return response }
      request = try await pushed.take(fields, exchange)
    } else {
      let target = try reader.target(fields, exchange)
      do throws(OAuthError) { request = try await reader.request(fields, for: target, exchange) } catch {
        return continuation.answers.send(error, to: target, exchange)
      }
      if let response = greeting(fields, exchange) { return response }
    }
    // A browser that stores no cookies sees the sign-in page, and what that page says about cookies.
    let browser = exchange.credentials.browser ?? newBrowser()
    request.browser = TokenHash(of: browser.reveal().utf8)
    guard let app = exchange.generation.apps[request.grant.client] else { throw exchange.refusal(.flowNotFound) }
    return try await continuation.proceed(request, app, exchange)
  }

  private func newBrowser() -> SecretText { SecretText(Base64URL.encode(random.bytes(32))) }

  /// Sets the cookie that names the browser, and leads to the same address, once. A request is sealed only for a cookie
  /// that the browser has sent: if two apps are opened at once, the later cookie replaces the earlier one.
  /// - Returns: nil if the browser has the cookie, or stores none.
  private func greeting(_ fields: FormFields, _ exchange: Exchange) -> Response? {
    guard exchange.credentials.browser == nil, fields[Self.greeted] == nil, let address = exchange.request.head.path
    else { return nil }
    return exchange.redirect(to: "\(address)&\(Self.greeted)=1", [exchange.cookies.begin(newBrowser())])
  }
}

/// `/auth/openid/par`: an app sends an authorization request itself, and the browser only brings a reference to it
/// (RFC 9126).
struct PushedRequests: Sendable {
  /// How a reference begins.
  private static let prefix = "urn:ietf:params:oauth:request_uri:"
  /// The parameters beside which no other counts (RFC 9126 section 4).
  static let parameters = ["client_id", "request_uri"]
  /// More than the length of any parameter.
  static let longest = 10_240

  /// Whether a request refers to a pushed one.
  static func isNamed(in fields: FormFields) -> Bool { fields["request_uri"]?.hasPrefix(prefix) ?? false }

  let clients: ClientEndpoints
  let reader: AuthorizationReader
  let apps: Apps
  let keys: KeyRing

  var endpoints: [Endpoint] {
    [clients.endpoint(OpenIDPath.pushed) { request throws(AppFault) in try await push(request) }]
  }

  private func push(_ call: ClientRequest) async throws(AppFault) -> Response {
    let (fields, exchange) = (call.fields, call.exchange)
    guard fields["request_uri"] == nil else {
      throw .oauth(OAuthError("invalid_request", "a pushed request has no request_uri"))
    }
    guard call.app.grants.contains(.authorizationCode) else {
      throw .oauth(OAuthError("unauthorized_client", "the app has no authorization_code in its grants"))
    }
    guard let redirect = fields["redirect_uri"], exchange.generation.apps.receives(call.app, at: redirect) else {
      throw .oauth(OAuthError("invalid_request", "redirect_uri is not registered"))
    }
    let mode = fields["response_mode"].flatMap(AuthorizationRequest.ResponseMode.init(rawValue:)) ?? .query
    let target = AnswerTarget(app: call.app, redirect: redirect, state: fields["state"], mode: mode)
    let uri: String
    do throws(OAuthError) {
      var request = try await reader.request(fields, for: target, exchange)
      request.browser = nil
      do { uri = try keys.pushed(request) } catch {
        throw OAuthError("server_error", "the request cannot be kept", status: 500)
      }
    } catch {
      throw .oauth(error)
    }
    return .json(
      .members([
        "request_uri": .text(uri),
        "expires_in": .number(Int(AuthorizationRequest.pushedLifetime.components.seconds)),
      ]), code: 201)
  }

  /// The request of a reference, which can be used once.
  ///
  /// Attack: the reference of another app, or one that was used. Nothing is sent to an app for it, because only the
  /// reference says where.
  func take(_ fields: FormFields, _ exchange: Exchange) async throws(Refusal) -> AuthorizationRequest {
    guard let uri = fields["request_uri"], var request = keys.pushedRequest(uri, at: apps.clock.now()),
      fields["client_id"] == request.grant.client,
      let app = exchange.generation.apps[request.grant.client],
      exchange.generation.apps.receives(app, at: request.grant.redirect)
    else {
      throw exchange.refusal(.flowExpired, reason: "invalid_request_uri: forged, too old, or of another app")
    }
    let pushed = request
    guard try await exchange.mappingFaults({ () async throws(StoreFault) in try await apps.spend(pushed: pushed) })
    else { throw exchange.refusal(.flowExpired, reason: "invalid_request_uri: used before") }
    // The user's hour begins now, and so does what `prompt=login` compares with.
    request.beganAt = apps.clock.now()
    return request
  }
}
