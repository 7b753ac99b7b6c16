import Crypto
import MoongateSDK

/// How an app takes over what a browser has completed for it: by a one-time code, redeemed with PKCE (RFC 7636, S256
/// only).
///
/// Attack: whoever begins a flow and sends its link to a victim must not fetch the victim's session. The code goes to
/// the app's own address, and only who made the challenge can redeem it.
package struct AppReturn: Sendable, Equatable, Codable {
  /// Base64url of the SHA-256 of the verifier (RFC 7636 section 4.2).
  package let challenge: String
  /// Where the person goes with the code. Judged already (`RedirectTargets`).
  package let address: String

  /// - Returns: nil where the challenge is no SHA-256 in base64url.
  package init?(challenge: String, address: String) {
    guard let bytes = Base64URL.decode(challenge), bytes.count == 32 else { return nil }
    self.challenge = challenge
    self.address = address
  }

  /// Whether the verifier is the one whose hash the challenge is. RFC 7636 section 4.1: 43 to 128 unreserved
  /// characters.
  func isProved(by verifier: String) -> Bool {
    guard (43...128).contains(verifier.utf8.count) else { return false }
    return constantTimeEquals(
      Array(Base64URL.encode(SHA256.hash(data: Array(verifier.utf8))).utf8), Array(challenge.utf8))
  }

  /// The address with the code in its query.
  func address(with code: SecretText) -> String { adding("code", code.reveal()) }

  /// The address with the code of a refusal in its query, as `error`.
  package func address(refused code: RefusalCode) -> String { adding("error", code.name) }

  /// - Parameter value: of letters, digits, `-` and `_`.
  private func adding(_ name: String, _ value: String) -> String {
    let end = address.firstIndex(of: "#") ?? address.endIndex
    let base = address[..<end]
    return base + (base.contains("?") ? "&" : "?") + name + "=" + value + address[end...]
  }
}

/// The one-time code of a complete flow that waits for its app.
package struct AppCode: Sendable, Equatable, Codable {
  /// How long it may be redeemed.
  package static let lifetime: Duration = .seconds(60)

  package let hash: TokenHash
  package let expiresAt: Timestamp
  /// The providers whose secrets the account had when the code was made; nil in one that an older program made.
  package let factors: Set<ProviderName>?

  package init(hash: TokenHash, expiresAt: Timestamp, factors: Set<ProviderName>?) {
    self.hash = hash
    self.expiresAt = expiresAt
    self.factors = factors
  }
}
