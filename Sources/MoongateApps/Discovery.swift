import Hummingbird
import MoongateCore
import MoongateHTTP
import MoongateSDK

/// The values in the discovery documents that other code must agree with.
enum AppDiscovery {
  static let prompts: Set<String> = ["none", "login", "consent", "select_account"]
}

/// The discovery documents (OpenID Connect Discovery 1.0 section 3, RFC 8414 section 2).
struct Discovery: Sendable {
  let pages: PageRenderer

  var endpoints: [Endpoint] {
    OpenIDPath.documents.map { path in
      Endpoint(.inbound, .get, path) { exchange throws(Refusal) in
        var response = Response.json(document(exchange))
        response.headers[.cacheControl] = "public, max-age=300"
        return response
      }
    }
  }

  /// The endpoints, by their names in the document.
  private static let addresses: KeyValuePairs<String, String> = [
    "authorization_endpoint": OpenIDPath.authorize,
    "pushed_authorization_request_endpoint": OpenIDPath.pushed,
    "token_endpoint": OpenIDPath.token,
    "userinfo_endpoint": OpenIDPath.userInfo,
    "revocation_endpoint": OpenIDPath.revoke,
    "introspection_endpoint": OpenIDPath.introspect,
    "device_authorization_endpoint": OpenIDPath.device,
    "end_session_endpoint": OpenIDPath.signOut,
    "jwks_uri": OpenIDPath.keys,
  ]

  private static let confidential = ["client_secret_basic", "client_secret_post", "private_key_jwt"]

  /// What is the same for every installation.
  private static let capabilities: KeyValuePairs<String, JSONValue> = [
    "response_types_supported": .texts(["code"]),
    "response_modes_supported": .texts(["query", "form_post"]),
    "code_challenge_methods_supported": .texts(["S256"]),
    "id_token_signing_alg_values_supported": .texts(SigningAlgorithm.allCases.map(\.rawValue)),
    "token_endpoint_auth_methods_supported": .texts(confidential + ["none"]),
    "token_endpoint_auth_signing_alg_values_supported": .texts(PublishedKey.algorithms),
    "revocation_endpoint_auth_methods_supported": .texts(confidential + ["none"]),
    "revocation_endpoint_auth_signing_alg_values_supported": .texts(PublishedKey.algorithms),
    "introspection_endpoint_auth_methods_supported": .texts(confidential),
    "introspection_endpoint_auth_signing_alg_values_supported": .texts(PublishedKey.algorithms),
    "acr_values_supported": .texts([1, 2].map { AppSignIn.acr($0) }),
    "prompt_values_supported": .texts(AppDiscovery.prompts.sorted()),
    "claim_types_supported": .texts(["normal"]),
    "claims_parameter_supported": .flag(true),
    "request_parameter_supported": .flag(false),
    "request_uri_parameter_supported": .flag(false),
    "authorization_response_iss_parameter_supported": .flag(true),
    "backchannel_logout_supported": .flag(true),
    "backchannel_logout_session_supported": .flag(true),
  ]

  private func document(_ exchange: Exchange) -> JSONValue {
    let issuer = exchange.gateway.publicURL.description
    let apps = exchange.generation.apps.apps
    var members = [JSONMember(name: "issuer", value: .text(issuer))]
    members += Self.addresses.map { JSONMember(name: $0.key, value: .text(issuer + $0.value)) }
    let grants = Set(apps.flatMap(\.grants)).map(\.rawValue)
    let scopes = Set(apps.flatMap(\.scopes))
    let subjects = Set(apps.map { $0.isPairwise ? "pairwise" : "public" })
    members += [
      JSONMember(name: "grant_types_supported", value: .texts(grants.sorted())),
      JSONMember(name: "scopes_supported", value: .texts(scopes.sorted())),
      JSONMember(name: "subject_types_supported", value: .texts(subjects.sorted())),
      JSONMember(name: "claims_supported", value: .texts(Self.claims(of: scopes))),
      JSONMember(name: "ui_locales_supported", value: .texts(pages.languages(exchange))),
    ]
    members += Self.capabilities.map { JSONMember(name: $0.key, value: $0.value) }
    return .object(members)
  }

  /// The claims that tokens can have with these scopes, without those of the operator's functions.
  private static func claims(of scopes: Set<String>) -> [String] {
    let always = ["iss", "sub", "aud", "azp", "exp", "iat", "auth_time", "nonce", "acr", "amr", "sid", "at_hash"]
    let byScope: KeyValuePairs<String, [String]> = [
      AppScope.profile: ["name", "given_name", "family_name", "preferred_username", "updated_at"],
      AppScope.email: ["email", "email_verified"],
      AppScope.phone: ["phone_number", "phone_number_verified"],
      AppScope.groups: ["groups"],
    ]
    return always + byScope.filter { scopes.contains($0.key) }.flatMap(\.value)
  }
}

/// `/auth/openid/keys`: the keys that verify tokens (RFC 7517).
struct KeysEndpoint: Sendable {
  let apps: Apps

  var endpoints: [Endpoint] {
    [
      Endpoint(.inbound, .get, OpenIDPath.keys) { exchange throws(Refusal) in
        // The keys that are derived from the master key cost nothing. An RSA key is made for an app that needs it.
        let algorithms = Set(exchange.generation.apps.apps.map(\.signing)).union([.es256, .edDSA])
        let keys: [String]
        do { keys = try await apps.signing.publicKeys(algorithms, at: apps.clock.now()) } catch {
          throw exchange.refusal(.storeUnavailable, fault: "\(error)")
        }
        var response = Response.plain(
          .ok, type: "application/jwk-set+json", Array("{\"keys\":[\(keys.joined(separator: ","))]}".utf8))
        response.headers[.cacheControl] = "public, max-age=300"
        return response
      }
    ]
  }
}

extension JSONValue {
  static func texts(_ texts: some Sequence<String>) -> JSONValue { .list(texts.map { .text($0) }) }
}
