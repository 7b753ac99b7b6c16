import Foundation

/// What an authenticator says of its own origin (Web Authentication, Level 3, section 6.5.4).
struct Attestation {
  let format: String
  let statement: CBORValue
  let isEmpty: Bool
  let authenticatorData: [UInt8]
  let clientDataHash: [UInt8]
  /// The authenticator's model.
  let aaguid: [UInt8]

  /// - Parameter key: the credential's.
  /// - Returns: the certificates that have to lead to a root yet; nil if there is nothing more to verify.
  /// - Throws: `format` where it is of one that the rules do not take, `attestation` where it does not verify.
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
      // Self attestation: the credential's own key signs, and anybody can do that. It is no word of a manufacturer.
      if rules.attestation == .packed, rules.roots != nil { throw .format }
      guard statement[.text("alg")]?.integer == key.algorithm, let signature = statement[.text("sig")]?.bytes,
        key.isSignature(signature, of: authenticatorData + clientDataHash)
      else { throw .attestation }
      return nil
    default:
      // It was not asked for, and nothing is taken from it.
      guard rules.attestation == .none else { throw .format }
      return nil
    }
  }

  private func demandCertificates(_ x5c: CBORValue, _ rules: Rules) throws(CeremonyFault) -> AttestationCertificate? {
    // What was not asked for is not judged, and a statement that leads to no root of the operator's says nothing.
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
  /// The same as ``isTrusted(byRoots:)``, with the operator's file.
  func demandTrust(_ rules: Rules) async throws -> Bool {
    guard let file = rules.roots else { return false }
    return try await isTrusted(byRoots: String(contentsOfFile: file, encoding: .utf8))
  }
}
