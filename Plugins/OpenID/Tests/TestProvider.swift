import Crypto
import CryptoExtras
import Foundation
import JWTKit
import MoongateSDK
import Synchronization

/// An OpenID provider with configurable keys, claims and headers.
final class TestProvider: WebClient {
  static let issuer = "https://accounts.example.com"
  static let now: Int64 = 1_800_000_000_000

  /// The values that tests change.
  struct Behaviour {
    var issuer = TestProvider.issuer
    var discovery: [String: Any] = [:]
    var published: [[String: Any]] = []
    /// The ID token of the next token response; nil for 400 invalid_grant.
    var idToken: String?
    var tokenStatus = 200
    var tokenError = "invalid_grant"
    /// The access token of the next token response; nil for none.
    var accessToken: String?
    /// The refresh token of the next token response; nil for none.
    var refreshToken: String?
    /// The answer of the userinfo endpoint; nil without an endpoint.
    var userInfo: [String: Any]?
    var userInfoStatus = 200
    /// The answers at other addresses, as status and JSON text.
    var others: [String: (Int, String)] = [:]
    var isDown = false
    var requests: [WebRequest] = []

    fileprivate var issued: [String: Any] {
      var issued: [String: Any] = [:]
      issued["id_token"] = idToken
      issued["access_token"] = accessToken
      issued["refresh_token"] = refreshToken
      return issued
    }
  }

  let state: Mutex<Behaviour>

  init(_ behaviour: sending Behaviour = Behaviour()) { state = Mutex(behaviour) }

  func change(_ body: (inout sending Behaviour) -> Void) { state.withLock { body(&$0) } }

  var requests: [WebRequest] { state.withLock { $0.requests } }

  func send(_ request: WebRequest) async throws(WebFault) -> WebAnswer {
    let answer: (Int, Data)? = state.withLock { state in
      state.requests.append(request)
      guard !state.isDown else { return nil }
      if let (status, text) = state.others[request.url] { return (status, Data(text.utf8)) }
      let json: [String: Any]
      var status = 200
      switch request.url {
      case state.issuer + "/.well-known/openid-configuration":
        let usual: [String: Any] = [
          "issuer": state.issuer, "authorization_endpoint": state.issuer + "/authorize",
          "token_endpoint": state.issuer + "/token",
          "jwks_uri": state.issuer + "/certs",
        ]
        let info = state.userInfo == nil ? [:] : ["userinfo_endpoint": state.issuer + "/userinfo"]
        json = usual.merging(info) { $1 }.merging(state.discovery) { _, new in new }
      case state.issuer + "/certs": json = ["keys": state.published]
      case state.issuer + "/token":
        status = state.tokenStatus
        json = status == 200 ? state.issued : ["error": state.tokenError]
      case state.issuer + "/userinfo": (status, json) = (state.userInfoStatus, state.userInfo ?? [:])
      default: (status, json) = (404, [:])
      }
      return (status, (try? JSONSerialization.data(withJSONObject: json)) ?? Data())
    }
    guard let answer else { throw WebFault(reason: "no answer") }
    return WebAnswer(status: answer.0, body: Array(answer.1))
  }
}

/// A signing key for tests.
struct TestKey: Sendable {
  enum Material: Sendable {
    case rsa(JWTKit.Insecure.RSA.PrivateKey)
    case p256(ES256PrivateKey, P256.Signing.PrivateKey)
    case p384(P384.Signing.PrivateKey)
    case ed25519(Curve25519.Signing.PrivateKey)
    /// An RSA key that signs by RSASSA-PSS.
    case pss(JWTKit.Insecure.RSA.PrivateKey)
  }

  let id: String
  let material: Material

  static let rsa = TestKey(
    id: "rsa",
    material: .rsa(made { try JWTKit.Insecure.RSA.PrivateKey(backing: _RSA.Signing.PrivateKey(keySize: .bits2048)) }))
  static let otherRSA = TestKey(
    id: "rsa",
    material: .rsa(made { try JWTKit.Insecure.RSA.PrivateKey(backing: _RSA.Signing.PrivateKey(keySize: .bits2048)) }))
  static let p256: TestKey = {
    let key = P256.Signing.PrivateKey()
    return TestKey(id: "p256", material: .p256(made { try ES256PrivateKey(pem: key.pemRepresentation) }, key))
  }()

  static let p384 = TestKey(id: "p384", material: .p384(P384.Signing.PrivateKey()))
  static let ed25519 = TestKey(id: "ed25519", material: .ed25519(Curve25519.Signing.PrivateKey()))
  static let pss = TestKey(
    id: "pss",
    material: .pss(made { try JWTKit.Insecure.RSA.PrivateKey(backing: _RSA.Signing.PrivateKey(keySize: .bits2048)) }))

  /// The algorithm that it signs by.
  var algorithm: String {
    switch material {
    case .rsa: "RS256"
    case .pss: "PS256"
    case .p256: "ES256"
    case .p384: "ES384"
    case .ed25519: "EdDSA"
    }
  }

  /// The published key.
  var published: [String: Any] {
    switch material {
    case .rsa(let key), .pss(let key):
      let numbers = made { try key.publicKey.getKeyPrimitives() }
      return [
        "kty": "RSA", "use": "sig", "alg": algorithm, "kid": id, "n": encoded(numbers.modulus),
        "e": encoded(numbers.publicExponent),
      ]
    case .p384(let key):
      let point = key.publicKey.rawRepresentation
      return [
        "kty": "EC", "crv": "P-384", "kid": id, "x": encoded(point.prefix(48)), "y": encoded(point.suffix(48)),
      ]
    case .ed25519(let key):
      return ["kty": "OKP", "crv": "Ed25519", "kid": id, "x": encoded(key.publicKey.rawRepresentation)]
    case .p256(_, let key):
      let point = key.publicKey.rawRepresentation
      return [
        "kty": "EC", "crv": "P-256", "use": "sig", "kid": id, "x": encoded(point.prefix(32)),
        "y": encoded(point.suffix(32)),
      ]
    }
  }

  /// The modulus, for forgeries that use it as a secret.
  var publicPEM: String {
    switch material {
    case .rsa(let key), .pss(let key): key.publicKey.pemRepresentation
    case .p256(_, let key): key.publicKey.pemRepresentation
    case .p384(let key): key.publicKey.pemRepresentation
    case .ed25519(let key): encoded(key.publicKey.rawRepresentation)
    }
  }

  /// The private key in PEM, for clients that sign.
  var privatePEM: String {
    switch material {
    case .rsa(let key), .pss(let key): key.pemRepresentation
    case .p256(_, let key): key.pemRepresentation
    case .p384(let key): key.pemRepresentation
    case .ed25519: ""
    }
  }

  /// A token with any header and claims, signed with this key.
  func sign(_ header: [String: Any], _ claims: [String: Any]) throws -> String {
    try sign(try part(header) + "." + part(claims))
  }

  /// A token with claims for its own algorithm.
  func sign(_ claims: [String: Any]) throws -> String { try sign(["alg": algorithm, "kid": id], claims) }

  /// A token with these two parts.
  func sign(_ text: String) throws -> String {
    let signature: Data
    switch material {
    case .rsa(let key):
      let raw = try _RSA.Signing.PrivateKey(pemRepresentation: key.pemRepresentation)
      signature = try raw.signature(for: Data(text.utf8), padding: .insecurePKCS1v1_5).rawRepresentation
    case .pss(let key):
      let raw = try _RSA.Signing.PrivateKey(pemRepresentation: key.pemRepresentation)
      signature = try raw.signature(for: SHA256.hash(data: Data(text.utf8)), padding: .PSS).rawRepresentation
    case .p256(_, let key): signature = try key.signature(for: Data(text.utf8)).rawRepresentation
    case .p384(let key): signature = try key.signature(for: Data(text.utf8)).rawRepresentation
    case .ed25519(let key): signature = try key.signature(for: Data(text.utf8))
    }
    return text + "." + encoded(signature)
  }
}

/// Creates a value that cannot fail in tests.
private func made<Value>(_ body: () throws -> Value) -> Value {
  do { return try body() } catch { fatalError("\(error)") }
}

/// An encoded part of a token.
func part(_ fields: [String: Any]) throws -> String { encoded(try JSONSerialization.data(withJSONObject: fields)) }

func encoded(_ data: some DataProtocol) -> String {
  Data(data).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
}
