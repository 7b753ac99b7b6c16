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
        if fields["request_uri"] == nil {
          let target = try reader.target(fields, exchange)
          do throws(OAuthError) { _ = try await reader.request(fields, for: target, exchange) } catch {
            return continuation.answers.send(error, to: target, exchange)
          }
        }
        // What was validated is short enough for an address.
        let query = AuthorizationReader.parameters.compactMap { name in fields[name].map { (name, $0) } }
        return .seeOther(OpenIDPath.authorize + "?" + PercentEncoding.form(query))
      },
    ]
  }

  private func begin(_ fields: FormFields, _ exchange: Exchange) async throws(Refusal) -> Response {
    let browser = exchange.credentials.browser ?? SecretText(Base64URL.encode(random.bytes(32)))
    var request: AuthorizationRequest
    if let uri = fields["request_uri"], uri.hasPrefix(PushedRequests.prefix) {
      request = try await pushed.take(uri, fields, exchange)
    } else {
      let target = try reader.target(fields, exchange)
      do throws(OAuthError) { request = try await reader.request(fields, for: target, exchange) } catch {
        return continuation.answers.send(error, to: target, exchange)
      }
    }
    request.browser = TokenHash(of: browser.reveal().utf8)
    guard let app = exchange.generation.apps[request.grant.client] else { throw exchange.refusal(.flowNotFound) }
    var response = try await continuation.proceed(request, app, exchange)
    if exchange.credentials.browser == nil { response.setCookies([exchange.cookies.begin(browser)]) }
    return response
  }
}

/// `/auth/openid/par`: an app sends an authorization request itself, and the browser only brings a reference to it
/// (RFC 9126).
struct PushedRequests: Sendable {
  /// How a reference begins.
  static let prefix = "urn:ietf:params:oauth:request_uri:"

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
  func take(_ uri: String, _ fields: FormFields, _ exchange: Exchange) async throws(Refusal) -> AuthorizationRequest {
    guard var request = keys.pushedRequest(uri, at: apps.clock.now()), fields["client_id"] == request.grant.client,
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
