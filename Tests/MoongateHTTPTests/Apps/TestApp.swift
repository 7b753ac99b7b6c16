import Crypto
import Foundation
import HTTPTypes
import MoongateCore
import MoongateSDK
import MoongateTesting
import PhoneOTP
import Testing

/// Apps of apps.lua, as tests use them.
enum TestApp {
  static let secret = "a secret/with+signs %41"
  static let redirect = "https://grafana.example.com/login/generic_oauth"
  static let afterwards = "https://grafana.example.com/"
  static let verifier = String(repeating: "v", count: 43)
  static let challenge = Base64URL.encode(SHA256.hash(data: Data(verifier.utf8)))
  static let issuer = "http://localhost:8080"

  /// An app with a secret that is never asked about.
  static func confidential(
    _ id: String = "grafana", redirect: [String] = [redirect], consent: App.Consent = .never,
    authentication: AppAuthentication = .secret(SecretText(secret)), requirement: AppRequirement = AppRequirement(),
    grants: Set<GrantType> = [.authorizationCode, .refreshToken], pkceIsOptional: Bool = false
  ) throws -> App {
    App(
      id: id, name: "Grafana", redirectURIs: try redirect.map { try RedirectURI($0) }, consent: consent,
      authentication: authentication, signOutURIs: [try RedirectURI(afterwards)], requirement: requirement,
      grants: grants, signing: .es256, pkceIsOptional: pkceIsOptional)
  }

  static func gateway(_ apps: [App], web: any WebClient = UnreachableWeb()) throws -> HTTPGateway {
    try HTTPGateway(web: web) { generation in
      generation.apps = AppTable(apps, own: generation.gateway.publicURL)
    }
  }

  /// The address of an authorization request.
  /// - Parameter changes: parameters to replace; nil removes one.
  static func authorize(_ changes: [String: String?] = [:]) -> String {
    "/auth/openid/authorize?" + form(request(changes))
  }

  static func request(_ changes: [String: String?] = [:]) -> [String: String] {
    let usual: [String: String?] = [
      "client_id": "grafana", "redirect_uri": redirect, "response_type": "code", "scope": "openid profile",
      "state": "st", "nonce": "no", "code_challenge": challenge, "code_challenge_method": "S256",
    ]
    return usual.merging(changes) { $1 }.compactMapValues(\.self)
  }

  static func form(_ fields: [String: String]) -> String {
    PercentEncoding.form(fields.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
  }

  /// `Authorization` with the secret, encoded as RFC 6749 section 2.3.1 says.
  static func basic(_ id: String = "grafana", _ secret: String = secret) -> String {
    let text = "\(PercentEncoding.encode(id)):\(PercentEncoding.encode(secret))"
    return "Basic \(Data(text.utf8).base64EncodedString())"
  }
}

extension Answer {
  /// The parameters with which an app gets the answer; nil if it does not go there.
  func answer(at redirect: String = TestApp.redirect) -> [String: String]? {
    guard status == 303, let location = header("Location"), location.hasPrefix(redirect + "?") else { return nil }
    return PercentEncoding.fields(in: location.dropFirst(redirect.count + 1).utf8)
  }
}

extension Client {
  /// Calls an endpoint of apps with a form.
  func form(_ path: String, _ fields: [String: String], headers: [(String, String)] = []) async throws -> Answer {
    try await send(
      .post, path, headers: [("Content-Type", "application/x-www-form-urlencoded")] + headers,
      body: TestApp.form(fields))
  }

  /// Redeems a code with the secret.
  func redeem(_ code: String, _ changes: [String: String?] = [:]) async throws -> Answer {
    let usual: [String: String?] = [
      "grant_type": "authorization_code", "code": code, "redirect_uri": TestApp.redirect,
      "code_verifier": TestApp.verifier,
    ]
    return try await form(
      "/auth/openid/token", usual.merging(changes) { $1 }.compactMapValues(\.self),
      headers: [("Authorization", TestApp.basic())])
  }
}

extension Browser {
  /// Begins an authorization in a browser that may have no cookie yet: the gateway sets it first.
  func authorize(_ changes: [String: String?] = [:]) async throws -> Answer {
    let answer = try await visit(TestApp.authorize(changes))
    guard let again = answer.header("Location"), again.hasSuffix("&greeted=1") else { return answer }
    return try await visit(again)
  }

  /// Signs in on the pages, from the sign-in page that it shows.
  /// - Returns: the answer to the code.
  func signIn(_ phone: String = "9999999999") async throws -> Answer {
    let sent = try await submit(["phone": phone])
    try await visit(try #require(sent.header("Location"), "\(sent.status) \(sent.text)"))
    return try await submit(["code": try #require(client.gateway.code(for: "+91\(phone)"))])
  }

  /// Authorizes the app and redeems the code.
  /// - Returns: the answer with the tokens.
  func tokens(_ changes: [String: String?] = [:]) async throws -> Answer {
    let sent = try await visit(TestApp.authorize(changes))
    let code = try #require(sent.answer()?["code"], "\(sent.status) \(sent.text)")
    return try await client.redeem(code)
  }
}
