import Crypto
import CryptoExtras
import Foundation
import MoongateSDK
import Testing

@testable import Passkey

/// One failing response for each step of "Registering a New Credential" (Web Authentication, Level 3, section 7.1).
@Suite struct RegistrationTests {
  typealias Change = @Sendable (inout SoftAuthenticator) -> Void

  static let site = Site(id: "auth.example.com", name: "Shop", origins: ["https://auth.example.com"])

  /// A step, the mistake in the response, and the expected fault.
  struct Wrong: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let fault: CeremonyFault
    let change: Change
    var rules = Rules()

    init(_ description: String, _ fault: CeremonyFault, rules: Rules = Rules(), _ change: @escaping Change) {
      (testDescription, self.fault, self.change, self.rules) = (description, fault, change, rules)
    }
  }

  private static func judge(_ key: SoftAuthenticator, _ rules: Rules = Rules(), having record: PasskeyRecord? = nil)
    throws -> Result<
      Credential, CeremonyFault
    >
  {
    let challenge = [UInt8](repeating: 7, count: 32)
    let options = #"{"challenge":"\#(Base64URL.encode(challenge))","rp":{"id":"auth.example.com"}}"#
    let text = try key.create(options)
    let registration = Registration(challenge: challenge, site: site, rules: rules, record: record, now: 1)
    return Result { () throws(CeremonyFault) in try registration.judge(text).credential }
  }

  private static func rules(_ change: (inout Rules) -> Void) -> Rules {
    var rules = Rules()
    change(&rules)
    return rules
  }

  private static let packed = rules { $0.attestation = .packed }
  private static let p256 = P256.Signing.PrivateKey()
  private static let point = Array(p256.publicKey.rawRepresentation)

  private static func cose(_ type: Int64, _ algorithm: Int64, _ more: [(Int64, CBORText)]) -> CBORText {
    .map([(.integer(1), .integer(type)), (.integer(3), .integer(algorithm))] + more.map { (.integer($0.0), $0.1) })
  }

  static let wrong: [Wrong] = [
    Wrong("3: another type of credential", .response) { $0.kind = "password" },
    Wrong("5, 6: client data that is not JSON", .clientData) { $0.clientDataBytes = Array("{".utf8) },
    Wrong("5: client data that is not UTF-8", .clientData) { $0.clientDataBytes = [0x7b, 0xff, 0x7d] },
    Wrong("6: client data without an origin", .clientData) {
      $0.clientDataBytes = Array(#"{"type":"webauthn.create","challenge":"x"}"#.utf8)
    },
    Wrong("7: an assertion", .type) { $0.type = "webauthn.get" },
    Wrong("7: an unknown ceremony", .type) { $0.type = "webauthn.Create" },
    Wrong("8: another challenge", .challenge) { $0.challenge = Base64URL.encode([UInt8](repeating: 8, count: 32)) },
    Wrong("8: an empty challenge", .challenge) { $0.challenge = "" },
    Wrong("8: the challenge with padding", .challenge) {
      $0.challenge = Base64URL.encode([UInt8](repeating: 7, count: 32)) + "="
    },
    Wrong("9: another origin", .origin) { $0.origin = "https://evil.example" },
    Wrong("9: the same host over http", .origin) { $0.origin = "http://auth.example.com" },
    Wrong("9: another port", .origin) { $0.origin = "https://auth.example.com:444" },
    Wrong("9: a subdomain", .origin) { $0.origin = "https://x.auth.example.com" },
    Wrong("9: a host with the same ending", .origin) { $0.origin = "https://evilauth.example.com" },
    Wrong("10: framed by another site", .crossOrigin) { $0.crossOrigin = true },
    Wrong("11: in a frame of another top origin", .crossOrigin) { $0.topOrigin = "https://evil.example" },
    Wrong("11: in a frame of the own top origin", .crossOrigin) { $0.topOrigin = "https://auth.example.com" },
    Wrong("token binding of Level 2", .tokenBinding) { $0.tokenBinding = "present" },
    Wrong("12: client data that was changed after signing", .attestation) { key in
      key.format = "packed"
      key.clientDataAfter = [0x20]
    },
    Wrong("13: an attestation object that is not CBOR", .attestationObject) { $0.attestationObject = [0xff] },
    Wrong("13: an attestation object with trailing bytes", .attestationObject) {
      $0.attestationObject = CBORText.map([]).bytes + [0]
    },
    Wrong("13: an attestation object without its parts", .attestationObject) {
      $0.attestationObject = CBORText.map([]).bytes
    },
    Wrong("13: a statement that is not a map", .attestationObject) { $0.statement = .list([]) },
    Wrong("13: authenticator data with trailing bytes", .authenticatorData) { $0.rubbish = [0] },
    Wrong("13: authenticator data without a credential", .authenticatorData) { $0.hasCredential = false },
    Wrong("13: extensions that are not a map", .authenticatorData) { $0.extensions = .list([]) },
    Wrong("14: the hash of another site", .rpID) { $0.rpID = "evil.example" },
    Wrong("14: the hash of a parent domain", .rpID) { $0.rpID = "example.com" },
    Wrong("15: the user was not present", .presence) { $0.flags = 0x1c },
    Wrong("16: the user was not verified", .verification) { $0.flags = 0x19 },
    Wrong("17: backed up but not eligible for backup", .backup) { $0.flags = 0x15 },
    Wrong("20: an algorithm that was not offered", .algorithm) { $0.cose = cose(2, -35, [(-1, .integer(2))]) },
    Wrong("20: a key that is not a map", .algorithm) { $0.cose = .list([]) },
    Wrong("20: a type and an algorithm that do not match", .algorithm) { $0.cose = cose(3, -7, []) },
    Wrong("20: a curve that does not match the algorithm", .algorithm) {
      $0.cose = cose(2, -7, [(-1, .integer(2)), (-2, .bytes(Array(point[..<32]))), (-3, .bytes(Array(point[32...])))])
    },
    Wrong("20: a point off the curve", .algorithm) {
      $0.cose = cose(
        2, -7, [(-1, .integer(1)), (-2, .bytes(Array(point[..<32]))), (-3, .bytes([UInt8](repeating: 1, count: 32)))])
    },
    Wrong("20: a point that is too short", .algorithm) {
      $0.cose = cose(2, -7, [(-1, .integer(1)), (-2, .bytes([1])), (-3, .bytes([1]))])
    },
    Wrong("20: an Ed25519 key that is too long", .algorithm) {
      $0.cose = cose(1, -8, [(-1, .integer(6)), (-2, .bytes([UInt8](repeating: 1, count: 33)))])
    },
    Wrong("20: an RSA exponent of 1", .algorithm) { $0.cose = rsa(exponent: [1]) },
    Wrong("20: an RSA exponent of 3", .algorithm) { $0.cose = rsa(exponent: [3]) },
    Wrong("20: an even RSA modulus", .algorithm) { $0.cose = rsa(last: 0xfe) },
    Wrong("20: an RSA modulus of 1,024 bits", .algorithm) { $0.cose = rsa(count: 128) },
    Wrong("20: an RSA modulus of 8,192 bits", .algorithm) { $0.cose = rsa(count: 1024) },
    Wrong("21: a format that was not asked for", .format, rules: packed) { $0.format = "none" },
    Wrong("21: another format", .format, rules: packed) { $0.format = "fido-u2f" },
    Wrong("21: a nonempty statement of format none", .attestation) {
      $0.statement = .map([(.text("x"), .integer(1))])
    },
    Wrong("22: a wrong packed signature", .attestation) { key in
      key.format = "packed"
      key.signs = { $0.dropLast() + [$0.last.map { $0 ^ 1 } ?? 0] }
    },
    Wrong("22: a packed statement of another algorithm", .attestation) { key in
      key.format = "packed"
      key.statement = .map([(.text("alg"), .integer(-8)), (.text("sig"), .bytes([1]))])
    },
    Wrong("22: a packed statement without a signature", .attestation) { key in
      key.format = "packed"
      key.statement = .map([(.text("alg"), .integer(-7))])
    },
    Wrong("23, 24: certificates without trusted roots", .format, rules: packed) { key in
      key.format = "packed"
      key.statement = .map([
        (.text("alg"), .integer(-7)), (.text("sig"), .bytes([1])), (.text("x5c"), .list([.bytes([1])])),
      ])
    },
    Wrong(
      "24: a model that is not accepted", .model, rules: rules { $0.aaguids = ["fbfc3007-154e-4ecc-8c0b-6e020557d7bd"] }
    ) { _ in },
    Wrong("25: an ID of 1,024 bytes", .length) { $0.id = [UInt8](repeating: 1, count: 1024) },
    Wrong("25: an empty ID", .length) { $0.id = [] },
    Wrong("the ID of another credential", .mismatch) { $0.rawID = [1, 2, 3] },
  ]

  private static func rsa(count: Int = 256, exponent: [UInt8] = [1, 0, 1], last: UInt8 = 0xff) -> CBORText {
    cose(3, -257, [(-1, .bytes([UInt8](repeating: 0xff, count: count - 1) + [last])), (-2, .bytes(exponent))])
  }

  @Test(arguments: wrong) func anAnswerThatFailsAStepIsRefused(_ wrong: Wrong) throws {
    var key = SoftAuthenticator(key: .p256(Self.p256))
    wrong.change(&key)
    #expect(try Self.judge(key, wrong.rules) == .failure(wrong.fault))
  }

  @Test func validRegistrationIsAccepted() throws {
    var key = SoftAuthenticator()
    key.count = 3
    key.aaguid = [0xfb, 0xfc, 0x30, 0x07, 0x15, 0x4e, 0x4e, 0xcc, 0x8c, 0x0b, 0x6e, 0x02, 0x05, 0x57, 0xd7, 0xbd]
    let made = try Self.judge(key).get()
    #expect(
      made.id == Base64URL.encode(key.id) && made.signCount == 3 && made.name == "iCloud Keychain"
        && made.aaguid == "fbfc3007-154e-4ecc-8c0b-6e020557d7bd")
    #expect(made.isUserVerified && made.isBackupEligible && made.isBackedUp)
    #expect(made.transports == ["internal", "hybrid"], "only words")
    // 5: a byte order mark is removed; 10: explicitly not framed; 28: extensions that were not requested.
    key.clientDataPrefix = [0xef, 0xbb, 0xbf]
    key.crossOrigin = false
    key.tokenBinding = "supported"
    key.extensions = .map([(.text("credProtect"), .integer(2))])
    #expect(try Self.judge(key).get().id == Base64URL.encode(key.id))
    // 25.
    key.id = [UInt8](repeating: 1, count: 1023)
    #expect(try Self.judge(key).get().id == Base64URL.encode(key.id))
  }

  @Test func everyOfferedAlgorithmIsAccepted() throws {
    for key: SoftAuthenticator.Key in [
      .p256(P256.Signing.PrivateKey()), .ed25519(Curve25519.Signing.PrivateKey()),
      .rsa(try _RSA.Signing.PrivateKey(keySize: .bits2048)),
    ] {
      var made = SoftAuthenticator(key: key)
      #expect(PublicKey.algorithms.contains(key.algorithm))
      _ = try Self.judge(made).get()
      // Packed self attestation, if requested.
      made.format = "packed"
      _ = try Self.judge(made, Self.packed).get()
    }
  }

  /// 26. Attack: an attacker registers an observed credential id and public key to replace the existing credential.
  @Test func aCredentialIsRegisteredOnce() throws {
    let key = SoftAuthenticator()
    let record = PasskeyRecord([try Self.judge(key).get()])
    #expect(try Self.judge(key, having: record) == .failure(.known))
  }

  /// 16: only if user verification is required.
  @Test func userVerificationFollowsTheConfiguration() throws {
    var key = SoftAuthenticator()
    key.flags = 0x19
    #expect(try Self.judge(key, Self.rules { $0.userVerification = .preferred }).get().isUserVerified == false)
    #expect(try Self.judge(key) == .failure(.verification))
  }
}
