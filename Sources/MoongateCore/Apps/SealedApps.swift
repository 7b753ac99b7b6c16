import Foundation
import MoongateSDK

// What the browser and the app carry for the gateway. It is sealed: a client can neither read nor make it, and every
// gateway of the installation can open it.

extension KeyRing {
  /// The maximum length of a sealed text that is opened, in bytes.
  private static let longestSealed = 8192

  private static let pushedPrefix = "urn:ietf:params:oauth:request_uri:"

  /// - Throws: `OAuthError` if the text would be too long to be opened.
  private func sealing(_ value: some Encodable, for owner: String) throws -> String {
    let text = Base64URL.encode(try seal(Array(JSONEncoder().encode(value)), for: owner))
    guard text.utf8.count <= Self.longestSealed else { throw OAuthError("invalid_request", "The request is too long.") }
    return text
  }

  /// - Returns: nil if the text is forged, damaged, made for something else, or from another installation.
  private func opening<Value: Decodable>(_ text: String, for owner: String) -> Value? {
    guard text.utf8.count <= Self.longestSealed, let sealed = Base64URL.decode(text),
      let bytes = try? open(sealed, for: owner)
    else { return nil }
    return try? JSONDecoder().decode(Value.self, from: Data(bytes))
  }

  /// The request as its continuation carries it.
  /// - Throws: `OAuthError` if it is too long.
  package func sealed(_ request: AuthorizationRequest) throws -> String {
    try sealing(request, for: "authorization request")
  }

  /// The request of a continuation; nil if it is not ours, or an hour old.
  package func authorizationRequest(_ sealed: String, at now: Timestamp) -> AuthorizationRequest? {
    let request: AuthorizationRequest? = opening(sealed, for: "authorization request")
    return request.flatMap { now < $0.beganAt + AuthorizationRequest.lifetime ? $0 : nil }
  }

  /// The `request_uri` of a pushed request (RFC 9126).
  /// - Throws: `OAuthError` if it is too long.
  package func pushed(_ request: AuthorizationRequest) throws -> String {
    Self.pushedPrefix + (try sealing(request, for: "pushed request"))
  }

  /// The pushed request of a `request_uri`; nil if it is not ours, or too old. Its app is the `client` of its grant.
  package func pushedRequest(_ uri: String, at now: Timestamp) -> AuthorizationRequest? {
    guard uri.hasPrefix(Self.pushedPrefix) else { return nil }
    let request: AuthorizationRequest? = opening(
      String(uri.dropFirst(Self.pushedPrefix.count)), for: "pushed request")
    return request.flatMap { now < $0.beganAt + AuthorizationRequest.pushedLifetime ? $0 : nil }
  }

  func code(_ code: AuthorizationCode) throws -> SecretText {
    SecretText(try sealing(code, for: "authorization code"))
  }

  /// - Returns: nil if the text is not a code of this installation.
  func authorizationCode(_ text: String) -> AuthorizationCode? { opening(text, for: "authorization code") }

  /// The code of a device's request, as the store keeps it.
  func stored(_ code: AuthorizationCode) throws -> [UInt8] {
    try seal(Array(JSONEncoder().encode(code)), for: "code of a device")
  }

  func storedCode(_ sealed: [UInt8]) -> AuthorizationCode? {
    (try? open(sealed, for: "code of a device")).flatMap {
      try? JSONDecoder().decode(AuthorizationCode.self, from: Data($0))
    }
  }
}

/// The content of an opaque access token.
struct AccessTokenContent: Codable, Sendable, Equatable {
  static let prefix = "mga_"

  let grant: String
  let issuedAt: Timestamp
  let expiresAt: Timestamp
  let scopes: [String]
}

extension KeyRing {
  func accessToken(_ content: AccessTokenContent) throws -> SecretText {
    SecretText(AccessTokenContent.prefix + (try sealing(content, for: "access token of an app")))
  }

  func accessTokenContent(_ text: String) -> AccessTokenContent? {
    guard text.hasPrefix(AccessTokenContent.prefix) else { return nil }
    return opening(String(text.dropFirst(AccessTokenContent.prefix.count)), for: "access token of an app")
  }
}

extension KeyRing {
  /// The ID of the grant of a service's token.
  func sealed(_ grant: ServiceGrant) throws -> String { try sealing(grant, for: "grant of a service") }

  /// - Returns: nil if the text is the ID of another grant, or not ours.
  func serviceGrant(_ id: String) -> ServiceGrant? { opening(id, for: "grant of a service") }
}

/// A refresh token: the ID of its grant, a secret, and an authentication code of both. The code tells a token that was
/// replaced long ago from one that never was ours, without any old hash being stored.
///
/// Attack: someone who knows the ID of a grant makes up tokens, so that the grant ends as if one had been stolen.
struct RefreshToken: Sendable {
  private static let prefix = "mgr_"
  private static let idLength = 22
  private static let secretLength = 43
  private static let codeLength = 16

  let text: SecretText
  /// The ID of the grant.
  let grant: String
  private let secret: String
  private let code: String

  var hash: TokenHash { TokenHash(of: text.reveal().utf8) }

  /// - Returns: nil if the text does not have the form of a refresh token.
  init?(_ text: String) {
    let rest = text.utf8.dropFirst(Self.prefix.utf8.count)
    guard text.hasPrefix(Self.prefix), rest.count == Self.idLength + Self.secretLength + Self.codeLength,
      rest.allSatisfy(Base64URL.contains)
    else { return nil }
    self.text = SecretText(text)
    grant = "ag_" + String(decoding: rest.prefix(Self.idLength), as: UTF8.self)
    secret = String(decoding: rest.dropFirst(Self.idLength).prefix(Self.secretLength), as: UTF8.self)
    code = String(decoding: rest.suffix(Self.codeLength), as: UTF8.self)
  }

  private init(grant: String, secret: [UInt8], code: String) {
    self.grant = grant
    self.secret = Base64URL.encode(secret)
    self.code = code
    text = SecretText(Self.prefix + grant.dropFirst(3) + self.secret + code)
  }

  /// A first token.
  init(of grant: String, _ keys: KeyRing, _ random: any RandomSource) {
    let secret = random.bytes(32)
    self.init(grant: grant, secret: secret, code: Self.codes(grant, Base64URL.encode(secret), keys)[0])
  }

  /// The tokens that follow this one, under each key of the ring, the current key first. The same token always has the
  /// same followers, so an answer that was lost can be given again without any secret being stored.
  func followers(_ keys: KeyRing) -> [RefreshToken] {
    let secrets = keys.appTokenCodes(of: ["next", grant, text.reveal()].map { Array($0.utf8) })
    return secrets.map { secret in
      RefreshToken(grant: grant, secret: secret, code: Self.codes(grant, Base64URL.encode(secret), keys)[0])
    }
  }

  /// Whether the gateway has made it.
  func isGenuine(_ keys: KeyRing) -> Bool {
    Self.codes(grant, secret, keys).contains { constantTimeEquals($0, code) }
  }

  private static func codes(_ grant: String, _ secret: String, _ keys: KeyRing) -> [String] {
    keys.appTokenCodes(of: ["refresh token", grant, secret].map { Array($0.utf8) }).map {
      Base64URL.encode($0.prefix(12))
    }
  }
}

extension App {
  /// The `sub` of the account: its ID, or a keyed hash that only apps with the same host get (OpenID Connect Core 1.0
  /// section 8.1).
  package func subject(of account: String, keys: KeyRing) -> String {
    guard isPairwise else { return account }
    return keys.appName("subject", redirectURIs.lazy.compactMap { $0.origin?.host }.first ?? id, account)
  }

  /// The `sid` of the session. It does not tell two apps that they have the same user.
  package func sessionName(_ session: String, keys: KeyRing) -> String { keys.appName("session", id, session) }
}
