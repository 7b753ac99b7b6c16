import Foundation
import MoongateSDK

/// The options of a ceremony as JSON (Web Authentication, Level 3, sections 5.1.9 and 5.1.10).
struct Options {
  /// The maximum lifetime of a challenge, in milliseconds.
  static let lifetime: Int64 = 120_000

  private struct Descriptor: Encodable {
    let type = "public-key"
    let id: String
    let transports: [String]

    init(_ credential: Credential) {
      id = credential.id
      transports = credential.transports
    }
  }

  private struct Request: Encodable {
    let challenge: String
    let timeout: Int64
    let rpId: String
    let allowCredentials: [Descriptor]
    let userVerification: String
  }

  private struct Creation: Encodable {
    struct Party: Encodable { let id, name: String }
    struct User: Encodable { let id, name, displayName: String }
    struct Parameter: Encodable {
      let type = "public-key"
      let alg: Int64
    }
    struct Selection: Encodable {
      let residentKey: String
      let requireResidentKey: Bool
      let userVerification: String
    }

    let rp: Party
    let user: User
    let challenge: String
    let pubKeyCredParams = PublicKey.algorithms.map(Parameter.init)
    let timeout: Int64
    let excludeCredentials: [Descriptor]
    let authenticatorSelection: Selection
    let attestation: String
  }

  /// The options of `navigator.credentials.get()`.
  static func request(_ challenge: [UInt8], _ site: Site, _ rules: Rules, allowing record: PasskeyRecord?) throws
    -> String
  {
    try text(
      Request(
        challenge: Base64URL.encode(challenge), timeout: rules.lifetime, rpId: site.id,
        allowCredentials: (record?.credentials ?? []).map(Descriptor.init),
        userVerification: rules.userVerification.rawValue))
  }

  /// The options of `navigator.credentials.create()`.
  static func creation(
    _ challenge: [UInt8], _ site: Site, _ rules: Rules, for account: StepAccount, excluding record: PasskeyRecord?
  ) throws -> String {
    let name = account.identifiers.first?.display ?? account.id
    return try text(
      Creation(
        rp: Creation.Party(id: site.id, name: site.name),
        user: Creation.User(
          id: Base64URL.encode(account.id.utf8), name: name,
          displayName: account.names.isEmpty ? name : account.names.joined(separator: " ")),
        challenge: Base64URL.encode(challenge), timeout: rules.lifetime,
        // An imported passkey opens the account only after something else, so its device may hold a second one that was
        // made here.
        excludeCredentials: (record?.credentials ?? []).filter { $0.foreign == nil }.map(Descriptor.init),
        authenticatorSelection: Creation.Selection(
          residentKey: "preferred", requireResidentKey: false, userVerification: rules.userVerification.rawValue),
        attestation: rules.attestation == .packed ? "direct" : "none"))
  }

  private static func text(_ options: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(options), as: UTF8.self)
  }
}
