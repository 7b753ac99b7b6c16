import Foundation
import MoongateSDK

/// The well-known documents about passkeys for browsers and password managers.
extension Passkey: WellKnownPublisher {
  /// The other sites that may use these passkeys (Web Authentication, Level 3, section 5.11).
  static let relatedOrigins = "webauthn"
  /// The pages to add and manage passkeys (W3C "A Well-Known URL for Relying Party Passkey Endpoints").
  static let endpoints = "passkey-endpoints"

  private struct RelatedOrigins: Encodable { let origins: [String] }
  private struct Endpoints: Encodable { let enroll, manage: String? }

  public func document(_ name: String, of site: PublicSite) throws -> String? {
    switch name {
    case Self.relatedOrigins:
      // Origins of apps are not sites.
      let origins = site.settings.list("origins").filter { $0.hasPrefix("https://") }
      return origins.isEmpty ? nil : try Self.json(RelatedOrigins(origins: origins))
    case Self.endpoints: return try Self.json(Endpoints(enroll: site.setUpPage, manage: site.accountPage))
    default: return nil
    }
  }

  private static func json(_ value: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(value), as: UTF8.self)
  }
}
