import Foundation
import Hummingbird

/// Who arrived, as the gateway's headers say it.
struct Visitor {
  let account: String?
  let phone: String?
  let email: String?
  let name: String?
  let assertion: Assertion?
  /// All headers of the request, in their order, the host first.
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

  /// Who signed in by an address that nobody has proved: an account with a password has one, and the gateway passes on
  /// only verified ones.
  var hasUnverifiedEmail: Bool { assertion?.emailIsVerified == false && assertion?.steps?.contains("password") == true }

  /// The most telling thing that we know.
  var title: String { name ?? phone ?? email ?? account ?? "nobody the gateway knows" }
}

/// What the gateway signed, decoded to be looked at.
///
/// A real service verifies the signature by the keys at `/.well-known/moongate/jwks.json`, `aud` and `exp` before it
/// believes a word; this one decides nothing by it.
struct Assertion: Decodable {
  let subject: String?
  /// The providers that were passed.
  let steps: [String]?
  /// The latest sign-in or step-up, seconds since the epoch.
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

  /// - Returns: nil for anything that is no JWT (RFC 7519 section 3.1).
  init?(jwt: String) {
    let parts = jwt.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3 else { return nil }
    var payload = parts[1].replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
    payload += String(repeating: "=", count: (4 - payload.count % 4) % 4)
    guard let data = Data(base64Encoded: payload), let decoded = try? JSONDecoder().decode(Self.self, from: data) else {
      return nil
    }
    self = decoded
  }
}
