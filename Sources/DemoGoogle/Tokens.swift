import Crypto
import Foundation
import MoongateSDK

/// An access token, which is valid only for userinfo.
struct AccessToken: Sendable {
  let subject: String
  let scopes: Set<String>
  let expiresAt: Int64
}

/// An error of the token endpoint (RFC 6749 section 5.2).
struct TokenProblem: Error, Encodable, Equatable {
  let error: String
  let description: String

  enum CodingKeys: String, CodingKey {
    case error
    case description = "error_description"
  }

  /// Client authentication failed.
  static let badClient = TokenProblem(
    error: "invalid_client", description: "the client is unknown, or its secret is wrong")

  static func badGrant(_ why: String) -> TokenProblem { TokenProblem(error: "invalid_grant", description: why) }
  static func badRequest(_ why: String) -> TokenProblem { TokenProblem(error: "invalid_request", description: why) }
}

/// The response of the token endpoint (OpenID Connect Core 1.0 section 3.1.3.3), encoded in snake case.
struct TokenAnswer: Encodable, Sendable {
  let accessToken: String
  let idToken: String
  let tokenType = "Bearer"
  let expiresIn: Int64
  let scope: String
}

/// The response of the userinfo endpoint (section 5.3.2).
struct UserInfo: Encodable, Sendable {
  let sub: String
  let email: String?
  let isEmailVerified: Bool?
  let name: String?
  let givenName: String?
  let familyName: String?

  enum CodingKeys: String, CodingKey {
    case sub, email, name
    case isEmailVerified = "email_verified"
    case givenName = "given_name"
    case familyName = "family_name"
  }

  init(_ account: MockAccount, scopes: Set<String>) {
    let tellsEmail = scopes.contains("email") && account.email != nil
    let tellsName = scopes.contains("profile")
    sub = account.subject
    email = tellsEmail ? account.email : nil
    isEmailVerified = tellsEmail ? account.isEmailVerified : nil
    name = tellsName ? account.name : nil
    givenName = tellsName ? account.firstName : nil
    familyName = tellsName && !account.lastName.isEmpty ? account.lastName : nil
  }
}

extension MockGoogle {
  /// Redeems a code.
  /// - Parameter authorization: the request's Authorization header.
  func redeem(_ fields: [String: String], authorization: String?) async throws -> TokenAnswer {
    let client = try authenticate(fields, authorization)
    guard fields["grant_type"] == "authorization_code" else {
      throw TokenProblem(error: "unsupported_grant_type", description: "grant_type must be authorization_code")
    }
    guard let code = fields["code"] else { throw TokenProblem.badRequest("code is missing") }
    guard var grant = grants[code], grant.request.client == client.id else {
      throw TokenProblem.badGrant("the code is unknown")
    }
    if let given = grant.redeemed {
      // Attack: an attacker has seen a code. A code that is used twice becomes invalid for both (RFC 6749 section
      // 4.1.2).
      accessTokens.remove(given)
      throw TokenProblem.badGrant("the code was used before")
    }
    guard now() < grant.expiresAt else { throw TokenProblem.badGrant("the code has expired") }
    guard fields["redirect_uri"] == grant.request.redirect else {
      throw TokenProblem.badGrant("redirect_uri differs from that of the code")
    }
    guard let verifier = fields["code_verifier"], (43...128).contains(verifier.utf8.count),
      Base64URL.encode(SHA256.hash(data: Data(verifier.utf8))) == grant.request.challenge
    else {
      // Attack: an attacker tries verifiers for a stolen code.
      grants.remove(code)
      throw TokenProblem.badGrant("code_verifier does not match code_challenge")
    }
    guard let account = account(grant.subject) else { throw TokenProblem.badGrant("the account no longer exists") }
    let access = token()
    grant.redeemed = access
    // Mark the code as used before any suspension, so that concurrent requests cannot redeem it twice.
    grants.put(grant, for: code)
    accessTokens.put(
      AccessToken(subject: grant.subject, scopes: grant.request.scopes, expiresAt: now() + Self.tokenLifetime),
      for: access)
    if grant.isSlow { await sleep(Self.slowness) }
    let info = UserInfo(account, scopes: grant.request.scopes)
    let issued = now() / 1000
    let claims = IdentityClaims(
      iss: issuer, azp: client.id, aud: client.id, sub: info.sub, iat: issued, exp: issued + Self.tokenLifetime / 1000,
      nonce: grant.request.nonce,
      email: info.email, isEmailVerified: info.isEmailVerified, hd: info.email == nil ? nil : account.hostedDomain,
      name: info.name,
      givenName: info.givenName, familyName: info.familyName)
    return TokenAnswer(
      accessToken: access, idToken: try await signingKeys().sign(claims), expiresIn: Self.tokenLifetime / 1000,
      scope: grant.request.scopes.sorted().joined(separator: " "))
  }

  /// The user of an access token; nil if the token is invalid.
  func userInfo(_ token: String?) -> UserInfo? {
    guard let token, let access = accessTokens[token], now() < access.expiresAt, let account = account(access.subject)
    else { return nil }
    return UserInfo(account, scopes: access.scopes)
  }

  /// Authenticates a client by `client_secret_basic` or `client_secret_post` (RFC 6749 section 2.3.1).
  private func authenticate(_ fields: [String: String], _ authorization: String?) throws -> Client {
    var id = fields["client_id"]
    var secret = fields["client_secret"]
    if let authorization {
      // Only one method at a time is allowed.
      guard secret == nil else { throw TokenProblem.badRequest("the client uses two authentication methods at once") }
      guard let given = Self.basic(authorization), id == nil || id == given.id else { throw TokenProblem.badClient }
      (id, secret) = (given.id, given.secret)
    }
    guard let client = client(id), let secret, constantTimeEquals(secret, client.secret) else {
      throw TokenProblem.badClient
    }
    return client
  }

  private static func basic(_ header: String) -> (id: String, secret: String)? {
    let parts = header.split(separator: " ", maxSplits: 1)
    guard parts.count == 2, parts[0].lowercased() == "basic", let data = Data(base64Encoded: String(parts[1])) else {
      return nil
    }
    let pair = String(decoding: data, as: UTF8.self).split(
      separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard pair.count == 2, let id = PercentEncoding.decode(pair[0].utf8),
      let secret = PercentEncoding.decode(pair[1].utf8)
    else { return nil }
    return (id, secret)
  }
}
