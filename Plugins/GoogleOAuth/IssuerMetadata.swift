import Foundation
import MoongateSDK

/// The required parts of a discovery document (OpenID Connect Discovery 1.0 section 3).
struct IssuerMetadata: Sendable, Equatable {
  /// The maximum length of an address in bytes. The gateway accepts redirects of at most 8,192 bytes, parameters
  /// included.
  private static let longestAddress = 4_096

  let authorization: String
  let token: String
  let keys: String
  /// nil if the provider has no userinfo endpoint.
  let userInfo: String?
  /// Whether the token endpoint accepts `Authorization: Basic`; otherwise the secret is sent in the body.
  let takesBasic: Bool
  /// Whether authorization responses contain `iss` (RFC 9207).
  let namesIssuerInAnswers: Bool

  private struct Document: Decodable {
    let issuer: String
    let authorizationEndpoint: String
    let tokenEndpoint: String
    let jwksUri: String
    let userinfoEndpoint: String?
    let tokenEndpointAuthMethodsSupported: [String]?
    let authorizationResponseIssParameterSupported: Bool?
  }

  /// The URL of an issuer's discovery document.
  static func address(of issuer: String) -> String {
    (issuer.hasSuffix("/") ? String(issuer.dropLast()) : issuer) + "/.well-known/openid-configuration"
  }

  /// - Throws: an error for the operator.
  init(_ bytes: [UInt8], of issuer: String) throws(OAuthFault) {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    let document: Document
    do { document = try decoder.decode(Document.self, from: Data(bytes)) } catch {
      throw .provider("the discovery document of \(issuer) cannot be read")
    }
    // Attack: a document of another issuer at this URL (section 4.3: the names must be identical).
    guard document.issuer == issuer else {
      throw .provider("the discovery document of \(issuer) says that it is \(document.issuer)")
    }
    let addresses = [document.authorizationEndpoint, document.tokenEndpoint, document.jwksUri]
    for address in addresses + [document.userinfoEndpoint].compactMap(\.self) {
      guard Self.isSafe(address) else { throw .provider("\(issuer) names the address \(address), which is not https") }
    }
    authorization = document.authorizationEndpoint
    token = document.tokenEndpoint
    keys = document.jwksUri
    userInfo = document.userinfoEndpoint
    // Basic is the default.
    let methods = document.tokenEndpointAuthMethodsSupported ?? ["client_secret_basic"]
    takesBasic = methods.contains("client_secret_basic")
    guard takesBasic || methods.contains("client_secret_post") else {
      throw .provider("\(issuer) takes neither client_secret_basic nor client_secret_post")
    }
    namesIssuerInAnswers = document.authorizationResponseIssParameterSupported ?? false
  }

  /// https, or http to this machine, without a fragment, because parameters behind one would not be sent. The scheme is
  /// in lower case, because the gateway's HTTP client takes no other.
  private static func isSafe(_ address: String) -> Bool {
    SiteAddress.isSite(address, atMost: longestAddress) && address.hasPrefix("http") && !address.contains("#")
  }
}
