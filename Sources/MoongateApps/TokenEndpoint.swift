import Hummingbird
import MoongateCore
import MoongateHTTP
import MoongateSDK

/// `/auth/openid/token`: gives tokens to apps (RFC 6749 section 3.2).
struct TokenEndpoint: Sendable {
  let clients: ClientEndpoints
  let apps: Apps

  var endpoints: [Endpoint] {
    [
      clients.endpoint(OpenIDPath.token) { request throws(AppFault) in
        .tokens(try await tokens(request))
      }
    ]
  }

  private func tokens(_ request: ClientRequest) async throws(AppFault) -> AppTokens {
    let (app, call) = (request.app, request.exchange.appCall)
    let name = try request.required("grant_type")
    guard let type = GrantType(rawValue: name) else {
      throw .oauth(OAuthError("unsupported_grant_type", "grant_type is not supported"))
    }
    guard app.grants.contains(type) else {
      throw .oauth(OAuthError("unauthorized_client", "the app has no \(type.word) in its grants"))
    }
    switch type {
    case .authorizationCode:
      return try await apps.redeem(
        try request.required("code"), verifier: request.fields["code_verifier"],
        redirect: request.fields["redirect_uri"], by: app, call)
    case .refreshToken:
      return try await apps.refresh(try request.required("refresh_token"), scopes: request.scopes, by: app, call)
    case .deviceCode: return try await apps.redeemDevice(try request.required("device_code"), by: app, call)
    case .clientCredentials: return try await apps.issue(to: app, scopes: request.scopes, call)
    }
  }
}

extension ClientRequest {
  /// The scopes that the app asks for; nil: those that it has.
  fileprivate var scopes: [String]? { fields["scope"]?.split(separator: " ").map(String.init) }
}

extension Response {
  /// Tokens as JSON (RFC 6749 section 5.1).
  fileprivate static func tokens(_ tokens: AppTokens) -> Response {
    let optional: [(String, SecretText?)] = [("refresh_token", tokens.refresh), ("id_token", tokens.idToken)]
    let members =
      [
        JSONMember(name: "access_token", value: .text(tokens.access.reveal())),
        JSONMember(name: "token_type", value: .text("Bearer")),
        JSONMember(name: "expires_in", value: .number(Int(tokens.expiresIn.components.seconds))),
      ]
      + optional.compactMap { name, token in token.map { JSONMember(name: name, value: .text($0.reveal())) } }
      + [JSONMember(name: "scope", value: .text(tokens.scopes.joined(separator: " ")))]
    var response = Response.json(.object(members))
    response.headers.set("Pragma", to: "no-cache")
    return response
  }
}
