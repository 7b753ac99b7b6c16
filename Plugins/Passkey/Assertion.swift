import Crypto
import Foundation
import MoongateSDK

/// Verifies the response to `navigator.credentials.get()` as in "Verifying an Authentication Assertion" (Web
/// Authentication, Level 3, section 7.2). The numbers in comments are the steps of that section.
struct Assertion {
  /// The used members of `AuthenticationResponseJSON` (section 5.1.8).
  struct Response: Decodable {
    struct Inner: Decodable {
      let clientDataJSON: String
      let authenticatorData: String
      let signature: String
      let userHandle: String?
    }

    let id: String
    let rawId: String
    let type: String
    let response: Inner
  }

  let challenge: [UInt8]
  let site: Site
  let rules: Rules
  /// The account of the record.
  let account: String
  let record: PasskeyRecord
  /// Milliseconds since the Unix epoch.
  let now: Int64

  struct Verdict {
    /// The updated credential.
    let credential: Credential
    /// Whether the authenticator verified the user by its PIN or biometrics.
    let isUserVerified: Bool
    /// Whether the signature counter did not increase, so that a copy of the authenticator may exist.
    let isPerhapsCloned: Bool
  }

  /// - Parameter text: the response as JSON.
  /// - Throws: the failed check.
  func judge(_ text: String) throws(CeremonyFault) -> Verdict {
    // 3.
    guard let answer = try? JSONDecoder().decode(Response.self, from: Data(text.utf8)), answer.type == "public-key",
      answer.id == answer.rawId,
      let rawID = Base64URL.decode(answer.rawId), let clientBytes = Base64URL.decode(answer.response.clientDataJSON),
      let dataBytes = Base64URL.decode(answer.response.authenticatorData),
      let signature = Base64URL.decode(answer.response.signature)
    else { throw .response }
    // 5 and 6. The request allowed all credentials of the account, so a credential in the record was requested.
    guard var credential = record[rawID] else { throw .notAllowed }
    let handle = answer.response.userHandle.flatMap { $0.isEmpty ? nil : $0 }
    let expected = if let foreign = credential.foreign { foreign.userHandle } else { Base64URL.encode(account.utf8) }
    if let handle, handle != expected ?? handle || !Self.isUserHandle(handle) { throw .userHandle }
    // 8 to 14.
    guard let client = ClientData(clientBytes) else { throw .clientData }
    if let fault = client.fault(type: "webauthn.get", challenge: challenge, site: site) { throw fault }
    guard let data = AuthenticatorData(dataBytes) else { throw .authenticatorData }
    // 15 to 18.
    try data.demand(site, rules)
    // 19.
    let isEligible = data.flags.contains(.backupEligible)
    guard isEligible == credential.isBackupEligible || credential.foreign?.isUsed == false else { throw .backup }
    // 20 and 21.
    guard let keyBytes = Base64URL.decode(credential.key), let key = PublicKey(cose: keyBytes) else { throw .algorithm }
    guard key.isSignature(signature, of: dataBytes + client.hash) else { throw .signature }
    // 22.
    let counts = data.signCount != 0 || credential.signCount != 0
    let isPerhapsCloned = counts && data.signCount <= credential.signCount
    // Attack: a copy of the authenticator. Its counter is behind that of the original, which the user continues to use.
    if isPerhapsCloned, rules.counter == .refuse { throw .counter }
    // 24.
    credential.signCount = max(credential.signCount, data.signCount)
    credential.isBackedUp = data.flags.contains(.backedUp)
    credential.usedAt = now
    if credential.foreign != nil {
      credential.isBackupEligible = isEligible
      credential.foreign = ForeignCredential(isUsed: true, userHandle: expected ?? handle)
    }
    return Verdict(
      credential: credential, isUserVerified: data.flags.contains(.verified), isPerhapsCloned: isPerhapsCloned)
  }

  /// Whether it is base64url of at most 64 bytes (section 5.4.3), because the record of an imported passkey keeps it.
  private static func isUserHandle(_ text: String) -> Bool { Base64URL.decode(text).map { $0.count <= 64 } ?? false }
}
