import Crypto
import CryptoExtras
import Foundation
import MoongateSDK
import Testing

@testable import Passkey

/// One failing response for each step of "Verifying an Authentication Assertion" (Web Authentication, Level 3, section
/// 7.2).
@Suite struct AssertionTests {
  typealias Wrong = RegistrationTests.Wrong

  private static let challenge = [UInt8](repeating: 9, count: 32)

  private static func record(_ key: SoftAuthenticator, eligible: Bool = true, count: UInt32 = 0) throws -> PasskeyRecord
  {
    PasskeyRecord([
      Credential(
        id: Base64URL.encode(key.id), key: Base64URL.encode(try key.key.cose().bytes), signCount: count,
        name: "Passkey", createdAt: 1, usedAt: 1,
        transports: [], isBackupEligible: eligible, isBackedUp: false, isUserVerified: true, aaguid: "")
    ])
  }

  private static func judge(_ key: SoftAuthenticator, _ record: PasskeyRecord, _ rules: Rules = Rules()) throws
    -> Result<
      Assertion.Verdict, CeremonyFault
    >
  {
    let text = try key.get(#"{"challenge":"\#(Base64URL.encode(challenge))","rpId":"auth.example.com"}"#)
    let assertion = Assertion(
      challenge: challenge, site: RegistrationTests.site, rules: rules, account: "ac_1", record: record, now: 5)
    return Result { () throws(CeremonyFault) in try assertion.judge(text) }
  }

  static let wrong: [Wrong] = [
    Wrong("3: another type of credential", .response) { $0.kind = "password" },
    Wrong("5, 6: a credential that is not the account's", .notAllowed) { $0.rawID = [1, 2, 3] },
    Wrong("6: the user handle of another account", .userHandle) { $0.userHandle = Base64URL.encode("ac_2".utf8) },
    Wrong("6: a user handle that is not base64url", .userHandle) { $0.userHandle = "!" },
    Wrong("8, 9: client data that is not JSON", .clientData) { $0.clientDataBytes = Array("{".utf8) },
    Wrong("10: a registration", .type) { $0.type = "webauthn.create" },
    Wrong("11: another challenge", .challenge) { $0.challenge = Base64URL.encode([UInt8](repeating: 8, count: 32)) },
    Wrong("12: another origin", .origin) { $0.origin = "https://evil.example" },
    Wrong("13: framed by another site", .crossOrigin) { $0.crossOrigin = true },
    Wrong("14: in a frame of another top origin", .crossOrigin) { $0.topOrigin = "https://evil.example" },
    Wrong("token binding of Level 2", .tokenBinding) { $0.tokenBinding = "present" },
    Wrong("15: the hash of another site", .rpID) { $0.rpID = "evil.example" },
    Wrong("16: the user was not present", .presence) { $0.flags = 0x1c },
    Wrong("17: the user was not verified", .verification) { $0.flags = 0x19 },
    Wrong("18: backed up but not eligible for backup", .backup) { $0.flags = 0x15 },
    Wrong("19: no longer eligible for backup", .backup) { $0.flags = 0x05 },
    Wrong("7: authenticator data with trailing bytes", .authenticatorData) { $0.rubbish = [0] },
    Wrong("7: authenticator data that ends early", .authenticatorData) {
      $0.dataBytes = [UInt8](repeating: 0, count: 36)
    },
    Wrong("20: client data that was changed after signing", .signature) { $0.clientDataAfter = [0x20] },
    Wrong("21: a changed signature", .signature) { $0.signs = { $0.dropLast() + [($0.last ?? 0) ^ 1] } },
    Wrong("21: an empty signature", .signature) { $0.signs = { _ in [] } },
    Wrong("21: a signature with zero values", .signature) {
      $0.signs = { _ in [0x30, 0x06, 0x02, 0x01, 0x00, 0x02, 0x01, 0x00] }
    },
    Wrong("21: a signature of another key", .signature) { $0.key = .p256(P256.Signing.PrivateKey()) },
  ]

  @Test(arguments: wrong) func anAnswerThatFailsAStepIsRefused(_ wrong: Wrong) throws {
    var key = SoftAuthenticator()
    let record = try Self.record(key)
    wrong.change(&key)
    guard case .failure(let fault) = try Self.judge(key, record, wrong.rules) else {
      Issue.record("taken")
      return
    }
    #expect(fault == wrong.fault)
  }

  @Test func everyAlgorithmIsVerified() throws {
    for signing: SoftAuthenticator.Key in [
      .p256(P256.Signing.PrivateKey()), .ed25519(Curve25519.Signing.PrivateKey()),
      .rsa(try _RSA.Signing.PrivateKey(keySize: .bits2048)),
    ] {
      var key = SoftAuthenticator(key: signing)
      let record = try Self.record(key)
      let verdict = try Self.judge(key, record).get()
      #expect(verdict.isUserVerified && verdict.credential.isBackedUp && verdict.credential.usedAt == 5)
      // A credential that is not discoverable has no user handle.
      key.userHandle = nil
      _ = try Self.judge(key, record).get()
      key.signs = { $0.dropLast() + [($0.last ?? 0) ^ 1] }
      guard case .failure(.signature) = try Self.judge(key, record) else {
        Issue.record("another signature proves")
        return
      }
    }
  }

  /// 19: a credential that was not eligible for backup cannot become eligible.
  @Test func eligibilityDoesNotChange() throws {
    var key = SoftAuthenticator()
    guard case .failure(.backup) = try Self.judge(key, try Self.record(key, eligible: false)) else {
      Issue.record("taken")
      return
    }
    key.flags = 0x05
    _ = try Self.judge(key, try Self.record(key, eligible: false)).get()
  }

  /// 22. Attack: a copy of an authenticator with a lower counter.
  @Test(arguments: [(5, 5), (5, 4), (5, 0), (0, 0), (0, 1), (5, 6)] as [(UInt32, UInt32)])
  func counterThatDoesNotIncreaseIsReportedOrRefused(_ stored: UInt32, _ said: UInt32) throws {
    var key = SoftAuthenticator()
    key.count = said
    let isBehind = (stored != 0 || said != 0) && said <= stored
    let warned = try Self.judge(key, try Self.record(key, count: stored)).get()
    #expect(warned.isPerhapsCloned == isBehind && warned.credential.signCount == max(stored, said))
    var refusing = Rules()
    refusing.counter = .refuse
    let refused = try Self.judge(key, try Self.record(key, count: stored), refusing)
    if case .failure(.counter) = refused { #expect(isBehind) } else { #expect(!isBehind) }
  }

  /// 17: ignored but reported if user verification is not required.
  @Test func userVerificationFollowsTheConfiguration() throws {
    var key = SoftAuthenticator()
    key.flags = 0x19
    var rules = Rules()
    rules.userVerification = .preferred
    #expect(try Self.judge(key, try Self.record(key), rules).get().isUserVerified == false)
  }
}
