import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateHTTP

/// A request of an app that has authenticated itself.
struct ClientRequest: Sendable {
  let exchange: Exchange
  let fields: FormFields
  let app: App

  /// The value of a parameter (RFC 6749 section 5.2).
  func required(_ name: String) throws(AppFault) -> String {
    guard let value = fields[name] else { throw .oauth(OAuthError("invalid_request", "\(name) is missing")) }
    return value
  }
}

/// The endpoints that apps themselves call, with a form, and that answer in JSON.
struct ClientEndpoints: Sendable {
  let authentication: ClientAuthentication

  /// An endpoint at which the app authenticates itself. Cookies and the Origin of the request have no effect.
  func endpoint(
    _ path: String, _ handle: @escaping @Sendable (ClientRequest) async throws(AppFault) -> Response
  ) -> Endpoint {
    Endpoint(.inbound, .post, path) { exchange throws(Refusal) in
      do throws(AppFault) {
        let fields = try await exchange.appForm()
        let app = try await authentication.app(fields, exchange)
        return try await handle(ClientRequest(exchange: exchange, fields: fields, app: app))
      } catch {
        return Response.oauth(error, exchange)
      }
    }
  }
}

extension Exchange {
  /// The body as form fields. JSON, repeated parameters and bodies that are too long are refused as RFC 6749 section
  /// 5.2 says.
  func appForm() async throws(AppFault) -> FormFields {
    do throws(Refusal) {
      return try await form()
    } catch {
      log(error)
      throw .oauth(
        OAuthError(
          "invalid_request", "send application/x-www-form-urlencoded with each parameter once",
          status: error.code.status == 400 || error.code == .notJSON ? 400 : error.code.status))
    }
  }
}

extension Response {
  /// An error as JSON (RFC 6749 section 5.2), without anything that the client must not know.
  static func oauth(_ fault: AppFault, _ exchange: Exchange) -> Response {
    let error: OAuthError
    switch fault {
    case .oauth(let known): error = known
    case .store(let fault):
      exchange.log(exchange.refusal(.storeUnavailable, fault: fault.description))
      error = OAuthError("temporarily_unavailable", "try again later", status: 503)
    case .policy(let fault):
      exchange.log(exchange.refusal(.policyError, fault: fault.description))
      error = OAuthError("server_error", "a policy has failed", status: 500)
    }
    return oauth(error, exchange)
  }

  private static func oauth(_ error: OAuthError, _ exchange: Exchange) -> Response {
    var response = Response.json(
      .members(["error": .text(error.code), "error_description": .text(error.description)]),
      code: error.status)
    if error.status == 401 {
      response.headers[.wwwAuthenticate] = "Basic realm=\"\(exchange.gateway.publicURL.host)\", charset=\"UTF-8\""
    }
    if let wait = error.retryAfter { response.headers[.retryAfter] = "\(wait.retryAfterSeconds)" }
    return response
  }
}
