import SwiftASN1
import X509

/// The certificate chain of a packed attestation statement (Web Authentication, Level 3, sections 8.2 and 8.2.1).
struct AttestationCertificate {
  /// The maximum number of certificates; the authenticator's own is first.
  static let longestChain = 5

  /// id-fido-gen-ce-aaguid.
  private static let modelExtension: ASN1ObjectIdentifier = [1, 3, 6, 1, 4, 1, 45724, 1, 1, 4]

  private let chain: [Certificate]

  /// - Parameter x5c: the certificates of the statement, in DER.
  /// - Returns: nil if the list is empty or too long, or if one cannot be parsed.
  init?(_ x5c: CBORValue) {
    guard case .list(let items) = x5c, (1...Self.longestChain).contains(items.count) else { return nil }
    var chain: [Certificate] = []
    for item in items {
      guard let bytes = item.bytes, let certificate = try? Certificate(derEncoded: bytes) else { return nil }
      chain.append(certificate)
    }
    self.chain = chain
  }

  private var leaf: Certificate { chain[0] }

  /// Whether the authenticator's certificate meets section 8.2.1 for this model.
  func isOfModel(_ aaguid: [UInt8]) -> Bool {
    guard leaf.version == .v3, case .notCertificateAuthority? = try? leaf.extensions.basicConstraints else {
      return false
    }
    let subject = leaf.subject.flatMap { Array($0) }
    let has = { (type: ASN1ObjectIdentifier) in subject.contains { $0.type == type && !"\($0.value)".isEmpty } }
    // Country, organization and common name; the unit has a fixed value.
    guard has([2, 5, 4, 6]), has([2, 5, 4, 10]), has([2, 5, 4, 3]) else { return false }
    guard subject.filter({ $0.type == [2, 5, 4, 11] }).map({ "\($0.value)" }) == ["Authenticator Attestation"] else {
      return false
    }
    guard let model = leaf.extensions[oid: Self.modelExtension] else { return true }
    // An octet string of 16 bytes.
    return !model.critical && Array(model.value) == [0x04, 0x10] + aaguid
  }

  /// Whether the authenticator's certificate signed the message.
  /// - Parameter algorithm: the COSE algorithm identifier.
  func isSignature(_ signature: [UInt8], of message: [UInt8], algorithm: Int64) -> Bool {
    let names: [Int64: Certificate.SignatureAlgorithm] = [
      -7: .ecdsaWithSHA256, -8: .ed25519, -257: .sha256WithRSAEncryption,
    ]
    guard let name = names[algorithm] else { return false }
    return leaf.publicKey.isValidSignature(signature, for: message, signatureAlgorithm: name)
  }

  /// Whether the chain leads to one of the roots.
  ///
  /// Attack: an attacker creates a certificate for the model of a manufacturer. Its form is valid, but no trusted root
  /// has signed it.
  /// - Parameter pem: the roots, in PEM.
  /// - Throws: an error if the roots cannot be parsed.
  func isTrusted(byRoots pem: String) async throws -> Bool {
    let roots = try PEMDocument.parseMultiple(pemString: pem).map { try Certificate(pemDocument: $0) }
    var verifier = Verifier(rootCertificates: CertificateStore(roots)) { RFC5280Policy() }
    if case .validCertificate = await verifier.validate(leaf: leaf, intermediates: CertificateStore(chain.dropFirst()))
    {
      return true
    }
    return false
  }
}
