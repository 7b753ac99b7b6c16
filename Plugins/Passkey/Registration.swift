import Crypto
import Foundation
import MoongateSDK

/// Verifies the response to `navigator.credentials.create()` as in "Registering a New Credential" (Web Authentication,
/// Level 3, section 7.1). The numbers in comments are the steps of that section.
struct Registration {
  /// The used members of `RegistrationResponseJSON` (section 5.1.8).
  struct Response: Decodable {
    struct Inner: Decodable {
      let clientDataJSON: String
      let attestationObject: String
      let transports: [String]?
    }

    let id: String
    let rawId: String
    let type: String
    let response: Inner
  }

  let challenge: [UInt8]
  let site: Site
  let rules: Rules
  /// The passkeys of the account.
  let record: PasskeyRecord?
  /// Milliseconds since the Unix epoch.
  let now: Int64

  struct Verdict {
    let credential: Credential
    /// The attestation certificates whose chain must still be verified (step 24); nil if verification is complete.
    let certificate: AttestationCertificate?
  }

  /// Verifies the response and returns the new credential.
  /// - Parameter text: the response as JSON.
  /// - Throws: the failed check.
  func judge(_ text: String) throws(CeremonyFault) -> Verdict {
    // 3.
    guard let answer = try? JSONDecoder().decode(Response.self, from: Data(text.utf8)), answer.type == "public-key",
      answer.id == answer.rawId,
      let rawID = Base64URL.decode(answer.rawId), let clientBytes = Base64URL.decode(answer.response.clientDataJSON),
      let objectBytes = Base64URL.decode(answer.response.attestationObject)
    else { throw .response }
    // 5 to 11.
    guard let client = ClientData(clientBytes) else { throw .clientData }
    if let fault = client.fault(type: "webauthn.create", challenge: challenge, site: site) { throw fault }
    // 12 and 13.
    guard let object = try? CBORReader.read(objectBytes), let format = object[.text("fmt")]?.text,
      let statement = object[.text("attStmt")],
      case .map(let members) = statement, let dataBytes = object[.text("authData")]?.bytes
    else { throw .attestationObject }
    guard let data = AuthenticatorData(dataBytes), let attested = data.attested else { throw .authenticatorData }
    // 14 to 19.
    try data.demand(site, rules)
    // 20.
    guard let key = PublicKey(cose: attested.key) else { throw .algorithm }
    // 21 to 24.
    let certificate = try Attestation(
      format: format, statement: statement, isEmpty: members.isEmpty, authenticatorData: dataBytes,
      clientDataHash: client.hash,
      aaguid: attested.aaguid
    ).demand(by: key, rules)
    let aaguid = AAGUID.text(attested.aaguid)
    if !rules.aaguids.isEmpty, !rules.aaguids.contains(aaguid) { throw .model }
    // 25 and 26. Credentials of other accounts are found by the account in their user handle, never by their id, so a
    // duplicate id leads to no other account.
    guard (1...1023).contains(attested.id.count) else { throw .length }
    guard attested.id == rawID else { throw .mismatch }
    if record?[attested.id] != nil { throw .known }
    // 27. No extensions (28) are requested, and their outputs are ignored.
    let credential = Credential(
      id: Base64URL.encode(attested.id), key: Base64URL.encode(attested.key), signCount: data.signCount,
      name: AAGUID.name(aaguid), createdAt: now,
      usedAt: now, transports: Self.transports(answer.response.transports ?? []),
      isBackupEligible: data.flags.contains(.backupEligible),
      isBackedUp: data.flags.contains(.backedUp), isUserVerified: data.flags.contains(.verified), aaguid: aaguid)
    return Verdict(credential: credential, certificate: certificate)
  }

  /// The well-formed transports. They are only returned to the browser as hints.
  private static func transports(_ said: [String]) -> [String] {
    said.prefix(8).filter {
      (1...32).contains($0.utf8.count) && $0.utf8.allSatisfy { (97...122).contains($0) || $0 == 45 }
    }
  }
}

extension AuthenticatorData {
  /// Checks that are common to both ceremonies.
  func demand(_ site: Site, _ rules: Rules) throws(CeremonyFault) {
    guard rpIDHash == Array(SHA256.hash(data: Data(site.id.utf8))) else { throw .rpID }
    guard flags.contains(.present) else { throw .presence }
    guard rules.userVerification != .required || flags.contains(.verified) else { throw .verification }
    guard flags.contains(.backupEligible) || !flags.contains(.backedUp) else { throw .backup }
  }
}
