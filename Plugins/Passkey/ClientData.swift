import Crypto
import Foundation
import MoongateSDK

/// The client data that the authenticator signs: the ceremony, its challenge and origin (Web Authentication, Level 3,
/// section 5.8.1).
struct ClientData {
  private struct Collected: Decodable {
    struct TokenBinding: Decodable { let status: String }

    let type: String
    let challenge: String
    let origin: String
    let crossOrigin: Bool?
    let topOrigin: String?
    let tokenBinding: TokenBinding?
  }

  private let collected: Collected
  /// SHA-256 of the received bytes.
  let hash: [UInt8]

  /// - Returns: nil if the bytes are not client data JSON.
  init?(_ bytes: [UInt8]) {
    // "UTF-8 decode" of the Encoding Standard removes a byte order mark.
    let text = bytes.starts(with: [0xef, 0xbb, 0xbf]) ? bytes[3...] : bytes[...]
    guard let collected = try? JSONDecoder().decode(Collected.self, from: Data(text)) else { return nil }
    self.collected = collected
    hash = Array(SHA256.hash(data: Data(bytes)))
  }

  /// Why the data does not match this ceremony; nil if it does.
  func fault(type: String, challenge: [UInt8], site: Site) -> CeremonyFault? {
    if collected.type != type { return .type }
    if collected.challenge != Base64URL.encode(challenge) { return .challenge }
    if !site.origins.contains(collected.origin) { return .origin }
    // Attack: another site frames the page and covers it, so that the user confirms something else. The gateway's pages
    // are never framed.
    if collected.crossOrigin == true || collected.topOrigin != nil { return .crossOrigin }
    // Level 3 has no token binding, so a binding that the client negotiated cannot be verified here.
    if collected.tokenBinding?.status == "present" { return .tokenBinding }
    return nil
  }
}

/// The failed check of a ceremony, for the operator's log. Users see one message for all of them.
enum CeremonyFault: String, Error, Equatable {
  case response = "the response is for another type of credential or ceremony"
  case clientData = "the client data cannot be read"
  case type = "the client data is for another ceremony"
  case challenge = "the challenge does not match"
  case origin = "the origin does not belong to this site"
  case crossOrigin = "the page was in a frame of another site"
  case tokenBinding = "the client data requires token binding"
  case attestationObject = "the attestation object cannot be read"
  case authenticatorData = "the authenticator data cannot be read"
  case rpID = "the credential is for another site"
  case presence = "the user was not present"
  case verification = "the user was not verified"
  case backup = "the backup flags contradict each other or the registration"
  case algorithm = "the public key is invalid or its algorithm was not offered"
  case format = "the attestation format is not accepted"
  case attestation = "the attestation does not verify"
  case root = "the attestation's certificate chain does not end in a trusted root"
  case model = "the authenticator model is not accepted"
  case length = "the credential ID is empty or longer than 1,023 bytes"
  case mismatch = "the credential ID does not match the created credential"
  case known = "the credential is already registered"
  case notAllowed = "the credential is not among the requested ones"
  case userHandle = "the credential belongs to another account"
  case signature = "the signature does not verify"
  case counter = "the signature counter did not increase"
}
