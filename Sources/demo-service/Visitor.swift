import Foundation
import Hummingbird

/// The user of a request, from the gateway's headers.
struct Visitor {
  let account: String?
  let phone: String?
  let email: String?
  let name: String?
  let assertion: Assertion?
  /// All headers of the request in order, the host first.
  let headers: [(name: String, value: String)]

  init(_ request: Request) {
    let value = { (name: String) -> String? in
      request.headers.first { $0.name.canonicalName == name }.map(\.value).flatMap { $0.isEmpty ? nil : $0 }
    }
    account = value("remote-user")
    phone = value("remote-phone")
    email = value("remote-email")
    name = value("remote-name")
    assertion = value("x-moongate-assertion").flatMap(Assertion.init)
    headers =
      (request.head.authority.map { [("Host", $0)] } ?? []) + request.headers.map { ($0.name.rawName, $0.value) }
  }

  /// Whether the user signed in with an unverified address: an account with a password has an address, but the gateway
  /// forwards only verified ones.
  var hasUnverifiedEmail: Bool { assertion?.emailIsVerified == false && assertion?.steps?.contains("password") == true }

  /// The best known name of the user.
  var title: String { name ?? phone ?? email ?? account ?? "an anonymous user" }
}

/// The decoded assertion of the gateway, for display only.
///
/// A production service must verify the signature with the keys at `/.well-known/moongate/jwks.json`, as well as `aud`
/// and `exp`.
struct Assertion: Decodable {
  let subject: String?
  /// The providers of the completed steps.
  let steps: [String]?
  /// The latest sign-in or step-up, in seconds since the epoch.
  let authenticatedAt: Int64?
  let expiresAt: Int64?
  let issuer: String?
  let audience: String?
  let emailIsVerified: Bool?

  enum CodingKeys: String, CodingKey {
    case subject = "sub"
    case steps = "amr"
    case authenticatedAt = "auth_time"
    case expiresAt = "exp"
    case issuer = "iss"
    case audience = "aud"
    case emailIsVerified = "email_verified"
  }

  /// - Returns: nil if the text is not a JWT (RFC 7519 section 3.1).
  init?(jwt: String) {
    let parts = jwt.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3 else { return nil }
    // Base64url is decoded here, not by the SDK: like any service, the demo uses nothing of the gateway.
    var payload = parts[1].replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
    payload += String(repeating: "=", count: (4 - payload.count % 4) % 4)
    guard let data = Data(base64Encoded: payload), let decoded = try? JSONDecoder().decode(Self.self, from: data) else {
      return nil
    }
    self = decoded
  }
}
