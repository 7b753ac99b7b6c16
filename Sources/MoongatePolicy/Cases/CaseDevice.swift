import Crypto
import Foundation
import MoongateCore
import MoongateSDK

/// A simulated device for steps that call the Web Authentication API (Level 3).
///
/// It has one credential on the curve P-256 and answers like a browser.
struct CaseDevice: Sendable {
  private struct Options: Decodable {
    struct Party: Decodable { let id: String }
    struct Person: Decodable { let id: String }
    let challenge: String
    let rp: Party?
    let user: Person?
    let rpId: String?
  }

  private struct Answer: Encodable {
    let id: String
    let rawId: String
    let type = "public-key"
    let response: [String: String]
    let clientExtensionResults: [String: String] = [:]
  }

  private struct ClientData: Encodable {
    let type, challenge, origin: String
    let crossOrigin = false
  }

  private let key = P256.Signing.PrivateKey()
  private let id = Array(SHA256.hash(data: Data("the credential of a case".utf8)))
  /// The user handle of the credential, once it is registered.
  private var handle: String?

  /// The answer to `create` or `get` as JSON.
  /// - Parameter isRight: whether to sign `get` correctly, or to return the requested challenge of `create`.
  /// - Returns: nil for invalid options.
  mutating func answer(_ call: CeremonyCall, _ text: String, origin: String, isRight: Bool) -> String? {
    guard let options = try? JSONDecoder().decode(Options.self, from: Data(text.utf8)),
      let site = options.rp?.id ?? options.rpId
    else { return nil }
    let challenge =
      isRight || call == .get ? options.challenge : Base64URL.encode(SHA256.hash(data: Data(options.challenge.utf8)))
    let said = ClientData(type: "webauthn.\(call.rawValue)", challenge: challenge, origin: origin)
    guard let client = try? JSONEncoder().encode(said) else { return nil }
    var data = Array(SHA256.hash(data: Data(site.utf8)))
    var response = ["clientDataJSON": Base64URL.encode(client)]
    switch call {
    case .create:
      handle = options.user?.id
      // Flags: user present, user verified, attested credential data. The signature counter is 0.
      data += [0x45, 0, 0, 0, 0] + [UInt8](repeating: 0, count: 16) + [0, UInt8(id.count)] + id + coseKey
      response["attestationObject"] = Base64URL.encode(Self.attestation(data))
    case .get:
      data += [0x05, 0, 0, 0, 0]
      guard let signature = try? key.signature(for: Data(data) + Data(SHA256.hash(data: client))) else { return nil }
      response["authenticatorData"] = Base64URL.encode(data)
      response["signature"] = Base64URL.encode(
        isRight ? signature.derRepresentation : Self.spoiled(signature.derRepresentation))
      response["userHandle"] = handle
    }
    let name = Base64URL.encode(id)
    return (try? JSONEncoder().encode(Answer(id: name, rawId: name, response: response))).map {
      String(decoding: $0, as: UTF8.self)
    }
  }

  /// A different signature of the same form.
  static func spoiled(_ signature: Data) -> Data { signature.dropLast() + signature.suffix(1).map { $0 ^ 1 } }

  /// The key as COSE_Key (RFC 9053, section 7.1.1): an EC2 key for ES256.
  private var coseKey: [UInt8] {
    let point = Array(key.publicKey.rawRepresentation)
    return [0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20] + point[..<32] + [0x22, 0x58, 0x20]
      + point[32...]
  }

  /// An attestation object with the format `none`.
  private static func attestation(_ data: [UInt8]) -> [UInt8] {
    let text = { (text: String) in [0x60 | UInt8(text.utf8.count)] + Array(text.utf8) }
    return [0xa3] + text("fmt") + text("none") + text("attStmt") + [0xa0] + text("authData") + [
      0x58, UInt8(data.count),
    ] + data
  }
}

extension CaseRun {
  /// The provider of the current step, if a device answers it.
  func ceremonyStep() async throws -> (any FullProvider)? {
    guard let full = await dueProvider() as? any FullProvider,
      full.descriptor.submitFields.contains(where: { $0.kind == .json })
    else { return nil }
    return full
  }

  /// Answers with the device, and skips an optional step after it, such as a name.
  mutating func answerByDevice(_ provider: any FullProvider, isRight: Bool) async -> String {
    guard await openAppStep(provider), let flow, let step = await view()?.step,
      let field = step.fields.first(where: { $0.kind == .json })
    else {
      return outcomeText
    }
    let origin = generation.gateway.publicURL.description
    for case .ceremony(let call, let options) in step.shown {
      guard let answer = credentialDevice.answer(call, options, origin: origin, isRight: isRight) else { continue }
      take(await gateway.submit(flow.id, fields: [field.name: .text(answer)], by: client))
    }
    if case .view(let view)? = answer, let next = view.step, next.provider == provider.descriptor.name,
      !next.fields.isEmpty,
      !next.fields.contains(where: \.isRequired)
    {
      take(await gateway.submit(flow.id, fields: [:], by: client))
    }
    return outcomeText
  }
}
