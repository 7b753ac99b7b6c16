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
    var isDown = false
    var requests: [WebRequest] = []
  }

  let state: Mutex<Behaviour>

  init(_ behaviour: sending Behaviour = Behaviour()) { state = Mutex(behaviour) }

  func change(_ body: (inout sending Behaviour) -> Void) { state.withLock { body(&$0) } }

  var requests: [WebRequest] { state.withLock { $0.requests } }

  func send(_ request: WebRequest) async throws(WebFault) -> WebAnswer {
    let answer: (Int, Data)? = state.withLock { state in
      state.requests.append(request)
      guard !state.isDown else { return nil }
      let json: [String: Any]
      var status = 200
      switch request.url {
      case state.issuer + "/.well-known/openid-configuration":
        let usual: [String: Any] = [
          "issuer": state.issuer, "authorization_endpoint": state.issuer + "/authorize",
          "token_endpoint": state.issuer + "/token",
          "jwks_uri": state.issuer + "/certs",
        ]
        json = usual.merging(state.discovery) { _, new in new }
      case state.issuer + "/certs": json = ["keys": state.published]
      case state.issuer + "/token":
        status = state.tokenStatus
        json = status == 200 ? (state.idToken.map { ["id_token": $0] } ?? [:]) : ["error": state.tokenError]
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

  /// The published key.
  var published: [String: Any] {
    switch material {
    case .rsa(let key):
      let numbers = made { try key.publicKey.getKeyPrimitives() }
      return [
        "kty": "RSA", "use": "sig", "alg": "RS256", "kid": id, "n": encoded(numbers.modulus),
        "e": encoded(numbers.publicExponent),
      ]
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
    case .rsa(let key): key.publicKey.pemRepresentation
    case .p256(_, let key): key.publicKey.pemRepresentation
    }
  }

  /// A token with any header and claims, signed with this key.
  func sign(_ header: [String: Any], _ claims: [String: Any]) throws -> String {
    let text = try part(header) + "." + part(claims)
    let signature: Data
    switch material {
    case .rsa(let key):
      let raw = try _RSA.Signing.PrivateKey(pemRepresentation: key.pemRepresentation)
      signature = try raw.signature(for: Data(text.utf8), padding: .insecurePKCS1v1_5).rawRepresentation
    case .p256(_, let key): signature = try key.signature(for: Data(text.utf8)).rawRepresentation
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
