import Foundation
import MoongateSDK

/// A valid authorization request of a client (OpenID Connect Core 1.0 section 3.1.2.1).
struct AuthorizationRequest: Sendable, Equatable {
  let client: String
  let redirect: String
  let scopes: Set<String>
  let state: String?
  let nonce: String?
  /// The PKCE challenge (S256).
  let challenge: String
}

/// An open account selection page.
struct Choice: Sendable {
  let request: AuthorizationRequest
  let expiresAt: Int64
}

/// The data of an authorization code.
struct Grant: Sendable {
  let request: AuthorizationRequest
  let subject: String
  let expiresAt: Int64
  let isSlow: Bool
  /// The access token, after the code was redeemed.
  var redeemed: String?
}

/// Why an authorization request fails.
enum AuthorizationProblem: Error, Equatable {
  /// Shown on a page. Attack: an open redirect. Users are never redirected to a URI that the client did not register
  /// (RFC 6749 section 4.1.2.1).
  case unsafe(String)
  /// Returned to the client.
  case returned(error: String, description: String, redirect: String, state: String?)
}

/// The choice of the user on the account selection page.
enum Decision: Sendable, Equatable {
  case account(String, isSlow: Bool)
  case other(name: String, email: String, isVerified: Bool, hostedDomain: String?, isSlow: Bool)
  case cancel
  case fail
}

extension MockGoogle {
  /// Validates an authorization request and stores it until the user has chosen.
  /// - Returns: the key of the stored request.
  func ask(_ fields: [String: String]) throws(AuthorizationProblem) -> String {
    guard let client = client(fields["client_id"]) else {
      throw .unsafe("Unknown client: client_id is missing or wrong.")
    }
    guard let redirect = fields["redirect_uri"], client.redirects.contains(redirect) else {
      throw .unsafe(
        "redirect_uri is not registered for \(client.id). It must match exactly."
      )
    }
    let state = fields["state"]
    func refused(_ error: String, _ description: String) -> AuthorizationProblem {
      .returned(error: error, description: description, redirect: redirect, state: state)
    }
    guard fields["response_type"] == "code" else {
      throw refused("unsupported_response_type", "response_type must be code")
    }
    guard (fields["response_mode"] ?? "query") == "query" else {
      throw refused("invalid_request", "response_mode must be query")
    }
    let scopes = Set((fields["scope"] ?? "").split(separator: " ").map(String.init))
    guard scopes.contains("openid") else { throw refused("invalid_scope", "scope must contain openid") }
    guard let challenge = fields["code_challenge"], challenge.utf8.count == 43,
      challenge.utf8.allSatisfy(Base64URL.contains)
    else {
      throw refused("invalid_request", "code_challenge is missing or not a SHA-256 (RFC 7636)")
    }
    guard fields["code_challenge_method"] == "S256" else {
      throw refused("invalid_request", "code_challenge_method must be S256")
    }
    guard fields["request"] == nil, fields["request_uri"] == nil else {
      throw refused("request_not_supported", "request objects are not supported")
    }
    if fields["prompt"] == "none" { throw refused("interaction_required", "the account selection page is required") }
    let key = token()
    let request = AuthorizationRequest(
      client: client.id, redirect: redirect, scopes: scopes, state: state, nonce: fields["nonce"], challenge: challenge)
    choices.put(Choice(request: request, expiresAt: now() + Self.choiceLifetime), for: key)
    return key
  }

  /// The stored request of an account selection page.
  func choice(_ key: String?) throws(AuthorizationProblem) -> Choice {
    guard let key, let choice = choices[key], now() < choice.expiresAt else {
      throw .unsafe("This page has expired or was already used. Go back to the application and start again.")
    }
    return choice
  }

  /// - Returns: the redirect URL.
  func decide(_ key: String?, _ decision: Decision) throws(AuthorizationProblem) -> String {
    let request = try choice(key).request
    func refused(_ error: String, _ description: String) -> AuthorizationProblem {
      .returned(error: error, description: description, redirect: request.redirect, state: request.state)
    }
    let subject: String
    let isSlow: Bool
    switch decision {
    case .cancel:
      choices.remove(key ?? "")
      throw refused("access_denied", "the user cancelled")
    case .fail:
      choices.remove(key ?? "")
      throw refused("server_error", "the provider was asked to fail")
    case .account(let name, let slow):
      guard account(name) != nil else { throw .unsafe("This account does not exist. Go back and choose another.") }
      (subject, isSlow) = (name, slow)
    case .other(let name, let email, let isVerified, let domain, let slow):
      guard let account = MockAccount.typed(name: name, email: email, isVerified: isVerified, hostedDomain: domain)
      else {
        throw .unsafe("This is not an email address. Go back and enter one like dora@example.com.")
      }
      typed.put(account, for: account.subject)
      (subject, isSlow) = (account.subject, slow)
    }
    choices.remove(key ?? "")
    if seen.count < Self.most { seen.insert(subject) }
    let code = token()
    grants.put(
      Grant(request: request, subject: subject, expiresAt: now() + Self.codeLifetime, isSlow: isSlow, redeemed: nil),
      for: code)
    return back(
      to: request.redirect,
      [
        ("code", code), ("state", request.state), ("iss", issuer),
        ("scope", request.scopes.sorted().joined(separator: " ")),
      ])
  }

  /// The redirect URL with an error.
  nonisolated func back(with error: String, _ description: String, to redirect: String, state: String?) -> String {
    back(to: redirect, [("error", error), ("error_description", description), ("state", state), ("iss", issuer)])
  }

  private nonisolated func back(to redirect: String, _ fields: [(String, String?)]) -> String {
    redirect + (redirect.contains("?") ? "&" : "?")
      + PercentEncoding.form(fields.compactMap { name, value in value.map { (name, $0) } })
  }
}
