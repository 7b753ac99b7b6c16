import Foundation
import MoongateSDK
import Testing

@testable import Passkey

/// The provider as called by the core: rounds, states and records.
@Suite struct PasskeyTests {
  private struct Shape: Decodable {
    struct Party: Decodable { let id, name: String }
    struct Item: Decodable {
      let id: String
      let transports: [String]
    }
    struct Parameter: Decodable { let alg: Int64 }
    struct Selection: Decodable { let residentKey, userVerification: String }

    let challenge: String
    let timeout: Int
    let rp: Party?
    let user: Party?
    let rpId: String?
    let userVerification: String?
    let allowCredentials: [Item]?
    let excludeCredentials: [Item]?
    let pubKeyCredParams: [Parameter]?
    let authenticatorSelection: Selection?
    let attestation: String?
  }

  private func shape(_ open: PasskeyFixture.Open) throws -> Shape {
    try JSONDecoder().decode(Shape.self, from: Data(try open.options.utf8))
  }

  @Test func optionsDescribeTheCeremony() async throws {
    var fixture = PasskeyFixture()
    let first = try shape(try await fixture.begin(.set))
    #expect(first.rp?.id == "auth.example.com" && first.rp?.name == "Shop" && first.user?.name == "a@example.com")
    #expect(first.user?.id == Base64URL.encode("ac_1".utf8) && first.timeout == 120_000 && first.attestation == "none")
    #expect(first.pubKeyCredParams?.map(\.alg) == [-7, -8, -257] && first.excludeCredentials?.isEmpty == true)
    #expect(
      first.authenticatorSelection?.residentKey == "preferred"
        && first.authenticatorSelection?.userVerification == "required")
    #expect(Base64URL.decode(first.challenge)?.count == 32)
    #expect(try shape(try await fixture.begin(.set)).challenge != first.challenge)

    let key = SoftAuthenticator()
    try await fixture.add(key)
    let again = try shape(try await fixture.begin(.set))
    #expect(again.excludeCredentials?.map(\.id) == [Base64URL.encode(key.id)])
    let request = try shape(try await fixture.begin(.prove))
    #expect(request.rpId == "auth.example.com" && request.userVerification == "required")
    #expect(
      request.allowCredentials?.map(\.id) == [Base64URL.encode(key.id)]
        && request.allowCredentials?.first?.transports == ["internal", "hybrid"])

    fixture.settings = ["rp_id": "example.com", "user_verification": "discouraged", "attestation": "packed"]
    let other = try shape(try await fixture.begin(.set))
    #expect(
      other.rp?.id == "example.com" && other.attestation == "direct"
        && other.authenticatorSelection?.userVerification == "discouraged")
  }

  @Test func aPasskeyIsAddedNamedAndProved() async throws {
    var fixture = PasskeyFixture()
    let key = SoftAuthenticator()
    try await fixture.add(key, name: "  My  phone ")
    #expect(try fixture.kept.credentials.map(\.name) == ["My phone"])
    fixture.now += 5_000
    let begun = try await fixture.begin(.prove)
    guard
      case .proved(let proof) = try await fixture.submit(.prove, begun, ["credential": try key.get(try begun.options)])
    else {
      Issue.record("not proved")
      return
    }
    guard case .replace(let bytes) = proof.record else {
      Issue.record("its record stays as it is")
      return
    }
    #expect(proof.isMultiFactor)
    #expect(try PasskeyRecord(bytes: bytes).credentials.first?.usedAt == fixture.now)
    #expect(proof.facts == ["uv": "true", "backed_up": "true", "aaguid": "00000000-0000-0000-0000-000000000000"])

    // Without user verification, it is a single factor.
    fixture.settings = ["user_verification": "preferred"]
    var bare = key
    bare.flags = 0x19
    let second = try await fixture.begin(.prove)
    guard
      case .proved(let single) = try await fixture.submit(
        .prove, second, ["credential": try bare.get(try second.options)])
    else {
      Issue.record("not proved")
      return
    }
    #expect(!single.isMultiFactor && single.facts["uv"] == "false")
  }

  /// Attack: two copies of an authenticator answer concurrently in different flows with the same counter value.
  @Test func clonedAuthenticatorsCompleteOnlyOneFlow() async throws {
    var fixture = PasskeyFixture()
    var key = SoftAuthenticator()
    key.count = 1
    try await fixture.add(key)
    key.count = 2
    let begun = try await fixture.begin(.prove)
    guard
      case .proved(let proof) = try await fixture.submit(.prove, begun, ["credential": try key.get(try begun.options)]),
      case .replaceOnce(let bytes) = proof.record
    else {
      Issue.record("not once")
      return
    }
    #expect(try PasskeyRecord(bytes: bytes).credentials.first?.signCount == 2)
  }

  // MARK: challenges

  /// Attack: replay of a response in the same step.
  @Test func challengeAcceptsOneResponse() async throws {
    var fixture = PasskeyFixture()
    let key = SoftAuthenticator()
    try await fixture.add(key)
    let begun = try await fixture.begin(.prove)
    var wrong = key
    wrong.origin = "https://evil.example"
    guard
      case .refusedAndAsked("invalid_passkey", let round) = try await fixture.submit(
        .prove, begun, ["credential": try wrong.get(try begun.options)])
    else {
      Issue.record("not refused")
      return
    }
    let next = PasskeyFixture.Open(fields: round.fields, state: round.state, shown: round.shown)
    #expect(try shape(next).challenge != (try shape(begun).challenge))
    // The response to the first challenge arrives too late.
    guard
      case .refusedAndAsked("invalid_passkey", _) = try await fixture.submit(
        .prove, next, ["credential": try key.get(try begun.options)])
    else {
      Issue.record("taken")
      return
    }
    guard case .proved = try await fixture.submit(.prove, next, ["credential": try key.get(try next.options)]) else {
      Issue.record("not proved")
      return
    }
  }

  @Test func challengeExpiresAfterTwoMinutes() async throws {
    var fixture = PasskeyFixture()
    let key = SoftAuthenticator()
    try await fixture.add(key)
    let begun = try await fixture.begin(.prove)
    let answer = ["credential": try key.get(try begun.options)]
    fixture.now += 120_000
    #expect(try fixture.outcome(of: try await fixture.submit(.prove, begun, answer)) == "passkey_expired")
    fixture.now -= 1
    guard case .proved = try await fixture.submit(.prove, begun, answer) else {
      Issue.record("not proved")
      return
    }
    #expect(Passkey().descriptor.outcome("passkey_expired")?.isFailure == false)
  }

  /// Attack: the challenge of a sign-in is answered in a step that removes a passkey.
  @Test func challengeIsInvalidForOtherPurposes() async throws {
    var fixture = PasskeyFixture()
    let key = SoftAuthenticator()
    try await fixture.add(key)
    let begun = try await fixture.begin(.prove)
    for purpose: StepPurpose in [.disable, .change, .set] {
      await #expect(throws: PasskeyFault.otherPurpose) {
        _ = try await fixture.submit(purpose, begun, ["credential": try key.get(try begun.options)])
      }
    }
  }

  // MARK: other accounts

  /// Attack: the attacker's own passkey for the victim's account.
  @Test func passkeyOfAnotherAccountIsRefused() async throws {
    var victim = PasskeyFixture()
    try await victim.add(SoftAuthenticator())
    var thief = PasskeyFixture()
    thief.account = "ac_2"
    var key = SoftAuthenticator()
    key.userHandle = Base64URL.encode("ac_2".utf8)
    try await thief.add(key)
    #expect(try await victim.assertion(key) == "invalid_passkey")
    // With the id of the victim's passkey, which is not secret.
    key.rawID = Base64URL.decode(try victim.kept.credentials[0].id)
    #expect(try await victim.assertion(key) == "invalid_passkey")
    key.userHandle = nil
    #expect(try await victim.assertion(key) == "invalid_passkey")
  }

  @Test func accountWithoutAPasskeyIsRefused() async throws {
    var fixture = PasskeyFixture()
    let refused = try await fixture.provider.begin(
      fixture.step(.prove), ProviderInput(fields: [:], defaultRegion: "IN"))
    #expect(try fixture.outcome(of: refused) == "no_passkey")
    // Without an account, a ceremony is shown too, but no response is valid.
    fixture.hasAccount = false
    #expect(try shape(try await fixture.begin(.prove)).allowCredentials?.isEmpty == true)
    #expect(try await fixture.assertion(SoftAuthenticator()) == "invalid_passkey")
  }

  // MARK: parsing

  @Test(arguments: [
    "{}", "[]", "", "{", #"{"id":"x"}"#, #"{"id":1,"rawId":"x","type":"public-key","response":{"clientDataJSON":""}}"#,
  ])
  func invalidCredentialIsMalformed(_ text: String) async throws {
    let fixture = PasskeyFixture()
    let begun = try await fixture.begin(.set)
    #expect(try fixture.outcome(of: try await fixture.submit(.set, begun, ["credential": text])) == "malformed")
  }

  @Test func oversizedResponseIsRefused() async throws {
    let fixture = PasskeyFixture()
    let begun = try await fixture.begin(.set)
    var key = SoftAuthenticator()
    key.attestationObject = [UInt8](repeating: 0x81, count: 40_000)
    #expect(
      try fixture.outcome(of: try await fixture.submit(.set, begun, ["credential": try key.create(try begun.options)]))
        == "invalid_passkey")
  }

  // MARK: several passkeys

  @Test func accountIsLimitedToTwentyPasskeys() async throws {
    var fixture = PasskeyFixture()
    for _ in 0..<20 { try await fixture.add(SoftAuthenticator()) }
    #expect(try fixture.kept.credentials.count == 20)
    #expect(try #require(fixture.record).count < 65_536)
    let refused = try await fixture.provider.begin(fixture.step(.set), ProviderInput(fields: [:], defaultRegion: "IN"))
    #expect(try fixture.outcome(of: refused) == "too_many_passkeys")
  }

  @Test func usedPasskeyIsRenamed() async throws {
    var fixture = PasskeyFixture()
    let keys = [SoftAuthenticator(), SoftAuthenticator()]
    for key in keys { try await fixture.add(key) }
    let begun = try await fixture.begin(.change)
    let asked = try fixture.open(
      try await fixture.submit(.change, begun, ["credential": try keys[1].get(try begun.options)]))
    #expect(asked.fields == [Passkey.name])
    #expect(
      try fixture.outcome(of: try await fixture.submit(.change, asked, ["name": String(repeating: "x", count: 101)]))
        == "malformed")
    guard case .proved(let proof) = try await fixture.submit(.change, asked, ["name": "Key ring"]),
      case .replaceOnce(let bytes) = proof.record
    else {
      Issue.record("not renamed")
      return
    }
    #expect(try PasskeyRecord(bytes: bytes).credentials.map(\.name) == ["Passkey", "Key ring"])
  }

  @Test func userSelectsThePasskeyToRemove() async throws {
    var fixture = PasskeyFixture()
    let keys = [SoftAuthenticator(), SoftAuthenticator(), SoftAuthenticator()]
    for key in keys { try await fixture.add(key) }
    let begun = try await fixture.begin(.disable)
    let asked = try fixture.open(
      try await fixture.submit(.disable, begun, ["credential": try keys[0].get(try begun.options)]))
    #expect(asked.fields.first?.choices?.count == 4)
    guard
      case .proved(let proof) = try await fixture.submit(.disable, asked, ["passkey": Base64URL.encode(keys[2].id)]),
      case .replaceOnce(let bytes) = proof.record
    else {
      Issue.record("not removed")
      return
    }
    #expect(try PasskeyRecord(bytes: bytes).credentials.map(\.id) == keys[..<2].map { Base64URL.encode($0.id) })
    guard case .proved(let all) = try await fixture.submit(.disable, asked, ["passkey": "all"]),
      case .remove = all.record
    else {
      Issue.record("not removed")
      return
    }
  }

  @Test func onlyPasskeyIsRemovedWithoutASelection() async throws {
    var fixture = PasskeyFixture()
    let key = SoftAuthenticator()
    try await fixture.add(key)
    let begun = try await fixture.begin(.disable)
    guard
      case .proved(let proof) = try await fixture.submit(
        .disable, begun, ["credential": try key.get(try begun.options)]),
      case .remove = proof.record
    else {
      Issue.record("not removed")
      return
    }
  }

  // MARK: chosen passkey

  /// Any passkey of the account proves the user; only the chosen one is removed.
  @Test func onlyTheSelectedPasskeyIsRemoved() async throws {
    var fixture = PasskeyFixture()
    let keys = [SoftAuthenticator(), SoftAuthenticator(), SoftAuthenticator()]
    for key in keys { try await fixture.add(key) }
    let begun = try await fixture.begin(.disable, item: Base64URL.encode(keys[1].id))
    let line = try fixture.kept.credentials[1].line
    #expect(begun.shown.contains(.text(line)) && line.contains("-\u{2060}"), "a line does not end inside a date")
    guard
      case .proved(let proof) = try await fixture.submit(
        .disable, begun, ["credential": try keys[0].get(try begun.options)]),
      case .replaceOnce(let bytes) = proof.record
    else {
      Issue.record("not removed")
      return
    }
    #expect(
      try PasskeyRecord(bytes: bytes).credentials.map(\.id) == [keys[0], keys[2]].map { Base64URL.encode($0.id) })
  }

  @Test func removingTheLastPasskeyRemovesTheRecord() async throws {
    var fixture = PasskeyFixture()
    let key = SoftAuthenticator()
    try await fixture.add(key)
    let begun = try await fixture.begin(.disable, item: Base64URL.encode(key.id))
    guard
      case .proved(let proof) = try await fixture.submit(
        .disable, begun, ["credential": try key.get(try begun.options)]),
      case .remove = proof.record
    else {
      Issue.record("not removed")
      return
    }
  }

  @Test func selectedPasskeyIsRenamed() async throws {
    var fixture = PasskeyFixture()
    let keys = [SoftAuthenticator(), SoftAuthenticator()]
    for key in keys { try await fixture.add(key) }
    let begun = try await fixture.begin(.change, item: Base64URL.encode(keys[1].id))
    let asked = try fixture.open(
      try await fixture.submit(.change, begun, ["credential": try keys[0].get(try begun.options)]))
    guard case .proved(let proof) = try await fixture.submit(.change, asked, ["name": "Key ring"]),
      case .replaceOnce(let bytes) = proof.record
    else {
      Issue.record("not renamed")
      return
    }
    #expect(try PasskeyRecord(bytes: bytes).credentials.map(\.name) == ["Passkey", "Key ring"])
  }

  /// Attack: the item alone, or another account's passkey, removes a passkey.
  @Test func removalRequiresAVerifiedPasskey() async throws {
    var fixture = PasskeyFixture()
    let key = SoftAuthenticator()
    try await fixture.add(key)
    let item = Base64URL.encode(key.id)
    let begun = try await fixture.begin(.disable, item: item)
    #expect(
      try fixture.outcome(of: try await fixture.submit(.disable, begun, ["item": item, "passkey": item])) == "malformed"
    )
    var stranger = SoftAuthenticator()
    stranger.userHandle = key.userHandle
    guard
      case .refusedAndAsked("invalid_passkey", let round) = try await fixture.submit(
        .disable, begun, ["credential": try stranger.get(try begun.options)])
    else {
      Issue.record("not refused")
      return
    }
    // The next challenge keeps the chosen item.
    #expect(try PasskeyState(bytes: round.state).item == item)
  }

  @Test func removedPasskeyIsReported() async throws {
    var fixture = PasskeyFixture()
    let keys = [SoftAuthenticator(), SoftAuthenticator()]
    for key in keys { try await fixture.add(key) }
    let item = Base64URL.encode(keys[1].id)
    let begun = try await fixture.begin(.disable, item: item)
    // Removed in another tab in the meantime.
    fixture.record = try PasskeyRecord([fixture.kept.credentials[0]]).bytes
    #expect(
      try fixture.outcome(
        of: try await fixture.submit(.disable, begun, ["credential": try keys[0].get(try begun.options)]))
        == "passkey_gone")
    for purpose: StepPurpose in [.disable, .change] {
      let input = ProviderInput(fields: ["item": .text(item)], defaultRegion: "IN")
      #expect(try fixture.outcome(of: try await fixture.provider.begin(fixture.step(purpose), input)) == "passkey_gone")
      let other = ProviderInput(fields: ["item": .flag(true)], defaultRegion: "IN")
      #expect(try fixture.outcome(of: try await fixture.provider.begin(fixture.step(purpose), other)) == "malformed")
    }
    #expect(Passkey().descriptor.outcome("passkey_gone")?.isFailure == false)
  }

  /// A reset has verified another factor before, so the lost passkey is not required.
  @Test func resetRemovesALostPasskey() async throws {
    var fixture = PasskeyFixture()
    let keys = [SoftAuthenticator(), SoftAuthenticator()]
    for key in keys { try await fixture.add(key) }
    let asked = try await fixture.begin(.set, flow: .reset)
    guard
      case .proved(let proof) = try await fixture.submit(
        .set, asked, ["passkey": Base64URL.encode(keys[0].id)], flow: .reset),
      case .replaceOnce(let bytes) = proof.record
    else {
      Issue.record("not removed")
      return
    }
    #expect(try PasskeyRecord(bytes: bytes).credentials.map(\.id) == [Base64URL.encode(keys[1].id)])
  }

  /// Attack: a step that only verifies a passkey receives the fields of the removal round.
  @Test func removalFieldsAreRefusedBeforeVerification() async throws {
    var fixture = PasskeyFixture()
    try await fixture.add(SoftAuthenticator())
    let begun = try await fixture.begin(.disable)
    #expect(try fixture.outcome(of: try await fixture.submit(.disable, begun, ["passkey": "all"])) == "malformed")
  }

  @Test func passkeysAreListedWithTheirDetails() async throws {
    var fixture = PasskeyFixture()
    var stick = SoftAuthenticator()
    stick.aaguid = [0xfb, 0xfc, 0x30, 0x07, 0x15, 0x4e, 0x4e, 0xcc, 0x8c, 0x0b, 0x6e, 0x02, 0x05, 0x57, 0xd7, 0xbd]
    try await fixture.add(SoftAuthenticator(), name: "Phone")
    try await fixture.add(stick, name: "Other")
    var record = try fixture.kept
    record.credentials[0].usedAt += 1
    record.credentials[0].isBackedUp = false
    record.credentials[1].isBackedUp = true
    let items = try fixture.provider.holdings(in: try record.bytes)
    #expect(items.map(\.name) == ["Phone", "Other"])
    #expect(items.map(\.details) == [["On one device only"], ["iCloud Keychain", "Synced to your devices"]])
    #expect(items[0].addedAt == fixture.now && items[0].usedAt == fixture.now + 1 && items[1].usedAt == nil)
    #expect(throws: (any Error).self) { try fixture.provider.holdings(in: [1]) }
  }

  @Test func unacceptedAuthenticatorIsReported() async throws {
    var fixture = PasskeyFixture()
    fixture.settings = ["attestation": "packed", "aaguids": ["FBFC3007-154E-4ECC-8C0B-6E020557D7BD"]]
    var key = SoftAuthenticator()
    #expect(try await fixture.registration(key) == "passkey_not_accepted")
    key.format = "packed"
    #expect(try await fixture.registration(key) == "passkey_not_accepted")
    key.aaguid = [0xfb, 0xfc, 0x30, 0x07, 0x15, 0x4e, 0x4e, 0xcc, 0x8c, 0x0b, 0x6e, 0x02, 0x05, 0x57, 0xd7, 0xbd]
    #expect(try await fixture.registration(key) == nil)
  }

  @Test func configuredOriginsAreAccepted() async throws {
    var fixture = PasskeyFixture()
    var key = SoftAuthenticator()
    key.origin = "https://app.example.org"
    #expect(try await fixture.registration(key) == "invalid_passkey")
    fixture.settings = ["origins": ["https://app.example.org"]]
    #expect(try await fixture.registration(key) == nil)
    fixture.address = "http://localhost:8080/auth/callback/passkey"
    key.origin = "http://localhost:8080"
    #expect(try await fixture.registration(key) == nil)
  }

  @Test func everyWordIsInHindi() throws {
    let descriptor = Passkey().descriptor
    #expect(descriptor.mistakes == [])
    let words = try #require(descriptor.words)
    let said =
      [words.title, words.instruction] + Array(words.labels.values) + Array(words.links.values)
      + Array(words.page.values)
      + words.notices.values.flatMap { [$0.subject, $0.event] } + descriptor.outcomes.map(\.sentence)
      + [Credential.synced, Credential.attached, Credential.single]
    for text in said { #expect(words.translations(in: "hi")[text] != nil, "\(text)") }
  }
}
