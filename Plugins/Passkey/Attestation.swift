import Foundation

/// The attestation of an authenticator (Web Authentication, Level 3, section 6.5.4).
struct Attestation {
  let format: String
  let statement: CBORValue
  let isEmpty: Bool
  let authenticatorData: [UInt8]
  let clientDataHash: [UInt8]
  /// The model of the authenticator.
  let aaguid: [UInt8]

  /// - Parameter key: the public key of the credential.
  /// - Returns: the certificates whose chain must still be verified; nil if verification is complete.
  /// - Throws: `format` if the rules do not accept the format, `attestation` if verification fails.
  func demand(by key: PublicKey, _ rules: Rules) throws(CeremonyFault) -> AttestationCertificate? {
    switch format {
    case "none":
      guard rules.attestation == .none else { throw .format }
      // Section 8.7: an empty map.
      guard isEmpty else { throw .attestation }
      return nil
    case "packed":
      // Section 8.2.
      if let x5c = statement[.text("x5c")] { return try demandCertificates(x5c, rules) }
      // Self attestation: the credential's own key signs, so it proves nothing about the manufacturer.
      if rules.attestation == .packed, rules.roots != nil { throw .format }
      guard statement[.text("alg")]?.integer == key.algorithm, let signature = statement[.text("sig")]?.bytes,
        key.isSignature(signature, of: authenticatorData + clientDataHash)
      else { throw .attestation }
      return nil
    default:
      // No attestation was requested, so it is ignored.
      guard rules.attestation == .none else { throw .format }
      return nil
    }
  }

  private func demandCertificates(_ x5c: CBORValue, _ rules: Rules) throws(CeremonyFault) -> AttestationCertificate? {
    // An attestation that was not requested is not verified. Without configured roots, certificates prove nothing.
    if rules.attestation == .none { return nil }
    guard rules.roots != nil else { throw .format }
    guard let certificate = AttestationCertificate(x5c), let algorithm = statement[.text("alg")]?.integer,
      let signature = statement[.text("sig")]?.bytes,
      certificate.isSignature(signature, of: authenticatorData + clientDataHash, algorithm: algorithm),
      certificate.isOfModel(aaguid)
    else { throw .attestation }
    return certificate
  }
}

extension AttestationCertificate {
  /// The same as ``isTrusted(byRoots:)``, with the configured file.
  func demandTrust(_ rules: Rules) async throws -> Bool {
    guard let file = rules.roots else { return false }
    return try await isTrusted(byRoots: String(contentsOfFile: file, encoding: .utf8))
  }
}
