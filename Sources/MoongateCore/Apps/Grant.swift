import Crypto
import MoongateSDK

/// The right of an app to the result of a flow: a one-time code goes to the app's redirect URI, and whoever redeems it
/// must know the PKCE verifier (RFC 6749 section 4.1, RFC 7636 with S256 only).
///
/// Attack: someone begins a flow, sends its link to a victim, and fetches the victim's session. The code therefore goes
/// to an address that the app has registered, the page names the app, and only the creator of the challenge can redeem
/// the code.
package struct Grant: Sendable, Equatable, Codable {
  /// The app's `client_id`.
  package let client: String
  /// The redirect URI that receives the code. Already validated (`AppTable`).
  package let redirect: String
  /// The base64url-encoded SHA-256 of the verifier (RFC 7636 section 4.2).
  package let challenge: String
  /// Whether the user has agreed in this flow.
  package private(set) var isAllowed = false

  /// - Returns: nil if the challenge is not a SHA-256 in base64url.
  package init?(client: String, redirect: String, challenge: String) {
    guard let bytes = Base64URL.decode(challenge), bytes.count == 32 else { return nil }
    self.client = client
    self.redirect = redirect
    self.challenge = challenge
  }

  /// Records that the user agrees.
  mutating func allow() { isAllowed = true }

  /// Whether the challenge is the hash of the verifier. A verifier has 43 to 128 unreserved characters (RFC 7636
  /// section 4.1).
  func isProved(by verifier: String) -> Bool {
    guard (43...128).contains(verifier.utf8.count) else { return false }
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
