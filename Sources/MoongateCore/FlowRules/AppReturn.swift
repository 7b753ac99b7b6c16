import Crypto
import MoongateSDK

/// The app that receives the result of a flow that a browser completes: by a one-time code, redeemed with PKCE (RFC
/// 7636, S256 only).
///
/// Attack: someone begins a flow, sends its link to a victim, and fetches the victim's session. The code therefore goes
/// to the app's own address, and only the creator of the challenge can redeem it.
package struct AppReturn: Sendable, Equatable, Codable {
  /// The base64url-encoded SHA-256 of the verifier (RFC 7636 section 4.2).
  package let challenge: String
  /// The address that receives the code. Already validated (`RedirectTargets`).
  package let address: String

  /// - Returns: nil if the challenge is not a SHA-256 in base64url.
  package init?(challenge: String, address: String) {
    guard let bytes = Base64URL.decode(challenge), bytes.count == 32 else { return nil }
    self.challenge = challenge
    self.address = address
  }

  /// Whether the challenge is the hash of the verifier. A verifier has 43 to 128 unreserved characters (RFC 7636
  /// section 4.1).
  func isProved(by verifier: String) -> Bool {
    guard (43...128).contains(verifier.utf8.count) else { return false }
    return constantTimeEquals(
      Array(Base64URL.encode(SHA256.hash(data: Array(verifier.utf8))).utf8), Array(challenge.utf8))
  }

  /// The address with the code in its query.
  func address(with code: SecretText) -> String { adding("code", code.reveal()) }

  /// The address with a refusal's code in its query, as `error`.
  package func address(refused code: RefusalCode) -> String { adding("error", code.name) }

  /// - Parameter value: only letters, digits, `-` and `_`.
  private func adding(_ name: String, _ value: String) -> String {
    let end = address.firstIndex(of: "#") ?? address.endIndex
    let base = address[..<end]
    return base + (base.contains("?") ? "&" : "?") + name + "=" + value + address[end...]
  }
}

/// The one-time code of a completed flow that its app has not redeemed yet.
package struct AppCode: Sendable, Equatable, Codable {
  /// How long it can be redeemed.
  package static let lifetime: Duration = .seconds(60)

  package let hash: TokenHash
  package let expiresAt: Timestamp
  /// The providers whose secrets the account had when the code was made; nil for a code of an older version.
  package let factors: Set<ProviderName>?

  package init(hash: TokenHash, expiresAt: Timestamp, factors: Set<ProviderName>?) {
    self.hash = hash
    self.expiresAt = expiresAt
    self.factors = factors
  }
}
