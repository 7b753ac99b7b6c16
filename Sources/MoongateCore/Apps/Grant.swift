import Crypto
import MoongateSDK

/// The right of an app to the result of a sign-in: a one-time code goes to the app's redirect URI, and whoever redeems
/// it must know the PKCE verifier (RFC 6749 section 4.1, RFC 7636 with S256 only).
///
/// Attack: someone begins a flow, sends its link to a victim, and fetches the victim's session. The code therefore goes
/// to an address that the app has registered, the page names the app, and only the creator of the challenge can redeem
/// the code.
package struct Grant: Sendable, Equatable, Codable {
  /// The app's `client_id`.
  package let client: String
  /// The redirect URI that receives the code. Already validated (`AppTable`). Empty for a device, which has none.
  package let redirect: String
  /// The base64url-encoded SHA-256 of the verifier (RFC 7636 section 4.2); nil for an app that proves by a secret of
  /// its own who it is, and may leave PKCE out.
  package let challenge: String?
  /// The scopes that the app gets by tokens; empty for a flow whose result is a session.
  package let scopes: [String]
  /// Whether the user has agreed in this flow.
  package private(set) var isAllowed = false

  /// The grant of a flow whose result is a session. Such a grant always has a challenge.
  /// - Returns: nil if the challenge is not a SHA-256 in base64url.
  package init?(client: String, redirect: String, challenge: String) {
    guard Self.isChallenge(challenge) else { return nil }
    (self.client, self.redirect, self.challenge, scopes) = (client, redirect, challenge, [])
  }

  /// The grant of an authorization whose result is tokens.
  /// - Returns: nil if the challenge is not a SHA-256 in base64url, or if it is missing although the app needs one.
  package init?(app: App, redirect: String, challenge: String?, scopes: [String]) {
    guard challenge.map(Self.isChallenge) ?? app.mayOmitChallenge else { return nil }
    (client, self.redirect, self.challenge, self.scopes) = (app.id, redirect, challenge, scopes)
  }

  /// The grant of a device, whose secret is the device code (RFC 8628).
  init(device request: DeviceRequest) {
    (client, redirect, challenge, scopes) = (request.app, "", nil, request.scopes)
  }

  private static func isChallenge(_ text: String) -> Bool {
    // The encoding has one form only, so the text can be compared.
    Base64URL.decode(text).map { $0.count == 32 && Base64URL.encode($0) == text } ?? false
  }

  /// Records that the user agrees.
  package mutating func allow() { isAllowed = true }

  /// Whether the verifier belongs to the challenge. A verifier has 43 to 128 unreserved characters (RFC 7636 section
  /// 4.1).
  ///
  /// Attack: PKCE downgrade (RFC 9700 section 4.8.2). An attacker removes the challenge from the request, and injects
  /// the code into a session of the app, which sends its verifier. A verifier without a challenge therefore proves
  /// nothing.
  func isProved(by verifier: String?) -> Bool {
    guard let challenge else { return verifier == nil }
    guard let verifier, (43...128).contains(verifier.utf8.count) else { return false }
    return constantTimeEquals(
      Array(Base64URL.encode(SHA256.hash(data: Array(verifier.utf8))).utf8), Array(challenge.utf8))
  }

  /// The redirect URI with the code in its query.
  func address(with code: SecretText) -> String { Self.adding("code", code.reveal(), to: redirect) }

  /// The redirect URI with an error code in its query (RFC 6749 section 4.1.2.1).
  /// - Parameter error: only letters, digits and `_`.
  package static func address(_ redirect: String, error: String) -> String { adding("error", error, to: redirect) }

  /// - Parameter value: only letters, digits, `-` and `_`.
  private static func adding(_ name: String, _ value: String, to redirect: String) -> String {
    redirect + (redirect.contains("?") ? "&" : "?") + name + "=" + value
  }
}

/// The one-time code of a completed flow that its app has not redeemed yet.
package struct GrantCode: Sendable, Equatable, Codable {
  /// How long it can be redeemed.
  package static let lifetime: Duration = .seconds(60)

  package let hash: TokenHash
  package let expiresAt: Timestamp
  /// The providers whose secrets the account had when the code was made.
  package let factors: Set<ProviderName>

  package init(hash: TokenHash, expiresAt: Timestamp, factors: Set<ProviderName>) {
    self.hash = hash
    self.expiresAt = expiresAt
    self.factors = factors
  }
}
