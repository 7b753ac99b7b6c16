import Crypto
import Foundation
import MoongateSDK
import SwiftASN1
import Testing
import X509

@testable import Passkey

/// Packed attestation with certificates (Web Authentication, Level 3, sections 8.2 and 8.2.1).
@Suite struct AttestationTests {
  private static let model: [UInt8] = [
    0xfb, 0xfc, 0x30, 0x07, 0x15, 0x4e, 0x4e, 0xcc, 0x8c, 0x0b, 0x6e, 0x02, 0x05, 0x57, 0xd7, 0xbd,
  ]
  private static let modelExtension: ASN1ObjectIdentifier = [1, 3, 6, 1, 4, 1, 45724, 1, 1, 4]

  /// A manufacturer with its own root and the key that signs attestations.
  private struct Maker {
    let rootKey = P256.Signing.PrivateKey()
    let batchKey = P256.Signing.PrivateKey()
    var unit = "Authenticator Attestation"
    var isAuthority = false
    var stated: [UInt8]? = AttestationTests.model
    var isCritical = false
    var age: TimeInterval = 0

    private var rootName: DistinguishedName {
      get throws {
        try DistinguishedName {
          CountryName("SE")
          OrganizationName("Maker")
          CommonName("Maker root")
        }
      }
    }

    var root: Certificate {
      get throws {
        try Certificate(
          version: .v3, serialNumber: .init(), publicKey: .init(rootKey.publicKey), notValidBefore: .now - 86_400 * 20,
          notValidAfter: .now + 86_400,
          issuer: rootName, subject: rootName, signatureAlgorithm: .ecdsaWithSHA256,
          extensions: try Certificate.Extensions {
            Critical(BasicConstraints.isCertificateAuthority(maxPathLength: nil))
          },
          issuerPrivateKey: .init(rootKey))
      }
    }

    var batch: Certificate {
      get throws {
        let name = try DistinguishedName {
          CountryName("SE")
          OrganizationName("Maker")
          OrganizationalUnitName(unit)
          CommonName("Maker batch 7")
        }
        var extensions = try Certificate.Extensions {
          Critical(
            isAuthority
              ? BasicConstraints.isCertificateAuthority(maxPathLength: nil) : BasicConstraints.notCertificateAuthority)
        }
        if let stated {
          try extensions.append(
            Certificate.Extension(
              oid: AttestationTests.modelExtension, critical: isCritical, value: ([0x04, 0x10] + stated)[...]))
        }
        return try Certificate(
          version: .v3, serialNumber: .init(), publicKey: .init(batchKey.publicKey),
          notValidBefore: .now - 86_400 - age,
          notValidAfter: .now + 3_600 - age,
          issuer: rootName, subject: name, signatureAlgorithm: .ecdsaWithSHA256, extensions: extensions,
          issuerPrivateKey: .init(rootKey))
      }
    }

    /// An authenticator of the model with this manufacturer's certificate.
    func authenticator() throws -> SoftAuthenticator {
      var made = SoftAuthenticator()
      (made.format, made.aaguid) = ("packed", AttestationTests.model)
      var serializer = DER.Serializer()
      try serializer.serialize(batch)
      let (certificate, key) = (serializer.serializedBytes, batchKey)
      made.states = { message in
        .map([
          (.text("alg"), .integer(-7)),
          (.text("sig"), .bytes(Array(try key.signature(for: Data(message)).derRepresentation))),
          (.text("x5c"), .list([.bytes(certificate)])),
        ])
      }
      return made
    }
  }

  /// The result of a registration if the operator trusts the manufacturer's root; nil if it is accepted.
  private func registration(_ key: SoftAuthenticator, trusting maker: Maker) async throws -> RefusalReason? {
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("roots-\(UUID().uuidString).pem")
    try Data(maker.root.serializeAsPEM().pemString.utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    var fixture = PasskeyFixture()
    fixture.settings = ["attestation": "packed", "attestation_roots": .text(file.path)]
    return try await fixture.registration(key)
  }

  @Test func authenticatorOfATrustedVendorIsAccepted() async throws {
    let maker = Maker()
    #expect(try await registration(maker.authenticator(), trusting: maker) == nil)
    var silent = maker
    silent.stated = nil
    #expect(try await registration(silent.authenticator(), trusting: maker) == nil)
  }

  /// 24. Attack: a certificate of valid form, created by the user.
  @Test func attestationWithoutATrustedRootIsRefused() async throws {
    #expect(try await registration(Maker().authenticator(), trusting: Maker()) == "passkey_not_accepted")
    // Self attestation is not a statement of the manufacturer.
    var own = SoftAuthenticator()
    own.format = "packed"
    #expect(try await registration(own, trusting: Maker()) == "passkey_not_accepted")
    // An expired certificate.
    let maker = Maker()
    var old = maker
    old.age = 86_400
    #expect(try await registration(old.authenticator(), trusting: maker) == "passkey_not_accepted")
  }

  /// 22: sections 8.2 and 8.2.1.
  @Test func certificateWithInvalidFieldsIsRefused() async throws {
    let maker = Maker()
    let changes: [@Sendable (inout Maker) -> Void] = [
      { $0.unit = "Sales" }, { $0.isAuthority = true }, { $0.isCritical = true },
      { $0.stated = [UInt8](repeating: 1, count: 16) },
    ]
    for change in changes {
      var other = maker
      change(&other)
      #expect(try await registration(other.authenticator(), trusting: maker) == "passkey_not_accepted")
    }
  }

  @Test(arguments: [
    CBORText.list([]), .list([.bytes([1])]), .list([.integer(1)]), .text("x5c"),
    .list([CBORText](repeating: .bytes([0x30, 0]), count: 9)),
  ]) func unreadableStatementIsRefused(_ x5c: CBORText) async throws {
    let maker = Maker()
    var key = try maker.authenticator()
    key.states = { _ in .map([(.text("alg"), .integer(-7)), (.text("sig"), .bytes([1])), (.text("x5c"), x5c)]) }
    #expect(try await registration(key, trusting: maker) == "passkey_not_accepted")
  }

  /// Attack: the attestation statement of another registration.
  @Test func statementOfAnotherRegistrationIsRefused() async throws {
    let maker = Maker()
    var key = try maker.authenticator()
    let states = try #require(key.states)
    key.states = { try states($0 + [0]) }
    #expect(try await registration(key, trusting: maker) == "passkey_not_accepted")
  }
}
