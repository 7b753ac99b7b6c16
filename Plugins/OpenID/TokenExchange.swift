import Foundation
import MoongateSDK

/// Redeems a code or a refresh token at the token endpoint (OpenID Connect Core 1.0 sections 3.1.3 and 12, RFC 6749
/// sections 4.1.3 and 6).
struct TokenExchange {
  let client: Client
  let metadata: IssuerMetadata
  let call: SiteCall

  private struct Answer: Decodable {
    let idToken: String?
    let accessToken: String?
    let refreshToken: String?
  }

  /// What the token endpoint issues. Secrets.
  struct Issued {
    /// nil at a site without ID tokens.
    let idToken: String?
    /// For the userinfo endpoint; nil if the response has none.
    let accessToken: String?
    /// nil if the site issues none, or no new one.
    let refreshToken: String?
  }

  private struct Problem: Decodable {
    let error: String?
  }

  /// The errors of RFC 6749 section 5.2, and of GitHub, that the client's registration or settings cause. No other text
  /// of a site is logged.
  private static let ofClient: Set<String> = [
    "invalid_client", "invalid_request", "unauthorized_client", "unsupported_grant_type", "invalid_scope",
    "incorrect_client_credentials", "redirect_uri_mismatch",
  ]

  /// The errors that end a refresh token for good, or ask for the user (RFC 6749 section 5.2, GitHub's, and OpenID
  /// Connect Core 1.0 section 3.1.2.6). The text of another one is not logged.
  private static let ofToken: Set<String> = [
    "invalid_grant", "bad_refresh_token", "interaction_required", "login_required", "consent_required",
  ]

  /// - Throws: `OAuthFault` if the site does not answer or refuses the client, `AnswerRefusal` if it does not accept
  ///   the code.
  func redeem(_ code: String, _ attempt: Attempt) async throws -> Issued {
    var fields = [("grant_type", "authorization_code"), ("code", code), ("redirect_uri", attempt.redirect)]
    if client.preset.takesPKCE { fields.append(("code_verifier", attempt.verifier)) }
    let (status, error, said) = try await send(fields)
    if let said {
      guard (client.isOpenID ? said.idToken : said.accessToken) != nil else {
        throw OAuthFault.site("\(metadata.token) answers without \(client.isOpenID ? "an ID" : "an access") token")
      }
      return issued(said)
    }
    if [200, 400].contains(status), error == "invalid_grant" { throw AnswerRefusal(.code, "invalid_grant") }
    // Attack: invented codes at a site that has its own errors for them. As faults they would not count as attempts.
    let blames = error.map { Self.ofClient.subtracting(client.preset.codeErrors).contains($0) } ?? false
    if [200, 400].contains(status), !blames { throw AnswerRefusal(.code, "not accepted") }
    throw fault(status, error)
  }

  /// - Throws: `AnswerRefusal` if the site does not accept the token any more, otherwise `OAuthFault`. Only an error
  ///   that says so counts: a site that is overloaded or broken answers 400 too.
  func refresh(_ token: String) async throws -> Issued {
    let (status, error, said) = try await send([("grant_type", "refresh_token"), ("refresh_token", token)])
    if let said { return issued(said) }
    if let error, [200, 400, 401, 403].contains(status), Self.ofToken.contains(error) {
      throw AnswerRefusal(.code, error)
    }
    throw fault(status, error)
  }

  private func issued(_ said: Answer) -> Issued {
    Issued(idToken: said.idToken, accessToken: said.accessToken, refreshToken: said.refreshToken)
  }

  private func fault(_ status: Int, _ error: String?) -> OAuthFault {
    let told = error.map { Self.ofClient.contains($0) ? " \($0)" : "" } ?? ""
    return .site("\(metadata.token) answers \(status)\(told)")
  }

  /// - Returns: the status and the error of the answer, and its tokens; nil if the site refuses.
  private func send(_ fields: [(String, String)]) async throws -> (Int, String?, Answer?) {
    var fields = fields
    var headers = [
      (name: "Accept", value: "application/json"), (name: "Content-Type", value: "application/x-www-form-urlencoded"),
    ]
    try await authenticate(&fields, &headers)
    let answer: WebAnswer
    do throws(WebFault) {
      answer = try await call.tools.web.send(
        WebRequest(
          method: "POST", url: metadata.token, headers: headers, body: Array(PercentEncoding.form(fields).utf8)))
    } catch {
      throw OAuthFault.site("\(metadata.token): \(error.reason)")
    }
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    let error = (try? decoder.decode(Problem.self, from: Data(answer.body)))?.error
    // GitHub answers 200 with an error in it.
    guard answer.status == 200, error == nil else { return (answer.status, error, nil) }
    guard let said = try? decoder.decode(Answer.self, from: Data(answer.body)) else {
      throw OAuthFault.site("\(metadata.token) answers without \(client.isOpenID ? "an ID" : "an access") token")
    }
    return (answer.status, nil, said)
  }

  /// Adds what proves the client's identity.
  private func authenticate(_ fields: inout [(String, String)], _ headers: inout [(name: String, value: String)])
    async throws
  {
    switch try Self.method(of: client, at: metadata) {
    case (.basic, .secret(let secret)):
      // Both are form-encoded first (RFC 6749 section 2.3.1).
      let pair = PercentEncoding.encode(client.id) + ":" + PercentEncoding.encode(secret)
      headers.append((name: "Authorization", value: "Basic " + Data(pair.utf8).base64EncodedString()))
    case (_, .secret(let secret)): fields += [("client_id", client.id), ("client_secret", secret)]
    case (.signedSecret, .key(let key)):
      let secret = try await key.secret(of: client, for: metadata, call)
      fields += [("client_id", client.id), ("client_secret", secret)]
    case (_, .key(let key)):
      fields += [
        ("client_id", client.id), ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
        ("client_assertion", try await key.assertion(of: client, for: metadata, call)),
      ]
    }
  }

  enum Credential {
    case secret(String)
    case key(ClientKey)
  }

  /// The method of the settings, or the first one that the issuer offers and there is a credential for.
  static func method(of client: Client, at metadata: IssuerMetadata) throws(OAuthFault) -> (ClientAuth, Credential) {
    func credential(_ method: ClientAuth) -> Credential? {
      switch method {
      case .basic, .post: client.secret.map { .secret($0) }
      case .privateKeyJWT, .signedSecret: client.key.map { .key($0) }
      }
    }
    if let chosen = client.clientAuth {
      guard let found = credential(chosen) else {
        throw .setting(chosen == .basic || chosen == .post ? "client_secret" : "private_key")
      }
      return (chosen, found)
    }
    for method in ClientAuth.chosen where metadata.methods.contains(method.method) {
      if let found = credential(method) { return (method, found) }
    }
    throw .site(
      "\(client.issuer.address) takes \(AnswerRefusal.shown(metadata.methods.joined(separator: ", "))), for which the settings have no secret or key"
    )
  }
}
