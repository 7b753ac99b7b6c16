import Foundation
import MoongateSDK
import Testing

@testable import TOTP

private struct NoWeb: WebClient {
  func send(_ request: WebRequest) async throws(WebFault) -> WebAnswer { throw WebFault(reason: "no web") }
}

/// A user with an authenticator app, and the provider without core and store.
private struct AuthenticatorFixture {
  static let start: Int64 = 1_795_176_000_000
  let provider = TOTP()
  var now = AuthenticatorFixture.start
  /// nil for no account.
  var record: [UInt8]?
  var hasAccount = true
  var drift: Double = 1

  func step(_ purpose: StepPurpose, state: [UInt8] = []) -> StepContext {
    StepContext(
      flow: "any", purpose: purpose,
      account: hasAccount
        ? StepAccount(
          id: "ac_1", record: record,
          identifiers: [Identifier(kind: .email, value: "a@example.com", display: "a@example.com")]) : nil,
      identifier: nil, state: state, now: now, callback: nil,
      tools: StepTools(
        randomBytes: { count in (0..<count).map { _ in UInt8.random(in: 0...255) } },
        settings: StepSettings(values: ["issuer": "Shop", "drift": .number(drift)]), web: NoWeb()))
  }

  /// The requested fields of a step; fails if the step asks for nothing.
  func asked(_ answer: StepAnswer, _ location: SourceLocation = #_sourceLocation) throws -> (
    fields: [InputField], state: [UInt8], shown: [Shown]
  ) {
    guard case .ask(let fields, let state, let shown) = answer else {
      Issue.record("not asked: \(answer)", sourceLocation: location)
      throw CancellationError()
    }
    return (fields, state, shown)
  }

  func code(_ offset: Int64 = 0) throws -> String {
    let record = try TOTPRecord(bytes: try #require(record))
    return String(decoding: TimeCode.code(TimeCode.step(at: now) + offset, key: record.key), as: UTF8.self)
  }

  /// Sets up the app and returns the recovery codes.
  mutating func setUp() async throws -> [String] {
    let begun = try asked(try await provider.begin(step(.set), .typed([:])))
    let key = try #require(try TOTPState(bytes: begun.state).key)
    let code = String(decoding: TimeCode.code(TimeCode.step(at: now), key: key), as: UTF8.self)
    let shown = try asked(try await provider.submit(step(.set, state: begun.state), .typed(["code": code])))
    guard case .list(let codes)? = shown.shown.last else { throw CancellationError() }
    let done = try await provider.submit(step(.set, state: shown.state), .typed([:]))
    guard case .proved(let proof) = done, case .replaceOnce(let kept) = proof.record else { throw CancellationError() }
    record = kept
    now += 60_000
    return codes
  }

  mutating func prove(_ fields: [String: String], _ purpose: StepPurpose = .prove) async throws -> RefusalReason? {
    switch try await provider.submit(step(purpose), .typed(fields)) {
    case .proved(let proof):
      switch proof.record {
      case .replaceOnce(let kept): record = kept
      case .remove: record = nil
      default: Issue.record("the code was not spent")
      }
      return nil
    case .refused(let reason): return reason
    case let other:
      Issue.record("\(other)")
      return nil
    }
  }
}

extension ProviderInput {
  fileprivate static func typed(_ fields: [String: String]) -> ProviderInput {
    ProviderInput(fields: fields.mapValues { .text($0) }, defaultRegion: "IN")
  }
}

@Suite("The authenticator app") struct TOTPTests {
  @Test("is shown as a QR code and a key, and takes effect after a correct code") func settingUp() async throws {
    var fixture = AuthenticatorFixture()
    let begun = try fixture.asked(try await fixture.provider.begin(fixture.step(.set), .typed([:])))
    #expect(begun.fields.map(\.name) == ["code"] && begun.fields[0].isRequired)
    let key = try #require(try TOTPState(bytes: begun.state).key)
    #expect(key.count == 20)
    #expect(begun.shown.contains(.qr(KeyAddress.make(key: key, issuer: "Shop", person: "a@example.com"))))
    #expect(begun.shown.contains(.secret(Base32.encode(key).grouped(by: 4))))
    let wrong = try await fixture.provider.submit(fixture.step(.set, state: begun.state), .typed(["code": "000000"]))
    guard case .refused(.invalidCode) = wrong else {
      Issue.record("\(wrong)")
      return
    }
    #expect(try await fixture.setUp().count == 10)
    guard case .refused(.alreadySet) = try await fixture.provider.begin(fixture.step(.set), .typed([:])) else {
      Issue.record("an app that is there is not replaced")
      return
    }
  }

  @Test("accepts a code once") func replay() async throws {
    var fixture = AuthenticatorFixture()
    _ = try await fixture.setUp()
    let code = try fixture.code()
    #expect(try await fixture.prove(["code": "\(code.prefix(3)) \(code.suffix(3))"]) == nil)
    #expect(try await fixture.prove(["code": code]) == "code_used")
    #expect(try await fixture.prove(["code": try fixture.code(-1)]) == "code_used", "nor one from before it")
    #expect(try await fixture.prove(["code": try fixture.code(1)]) == nil)
    fixture.now += 30_000
    #expect(
      try await fixture.prove(["code": try fixture.code()]) == "code_used",
      "the clock caught up with a code that was early")
    fixture.now += 30_000
    #expect(try await fixture.prove(["code": try fixture.code()]) == nil)
  }

  @Test("tolerates the configured clock drift", arguments: [(0.0, 0), (1.0, 1)]) func drift(
    drift: Double, steps: Int64
  ) async throws {
    for offset in -2...2 {
      var fixture = AuthenticatorFixture()
      _ = try await fixture.setUp()
      fixture.now += 300_000
      fixture.drift = drift
      #expect(
        try await fixture.prove(["code": try fixture.code(Int64(offset))])
          == (abs(Int64(offset)) <= steps ? nil : .invalidCode), "\(offset)")
    }
  }

  @Test("accepts each recovery code once instead of a code") func recovery() async throws {
    var fixture = AuthenticatorFixture()
    let codes = try await fixture.setUp()
    #expect(try await fixture.prove(["recovery_code": codes[3].lowercased()]) == nil)
    #expect(try await fixture.prove(["recovery_code": codes[3]]) == .invalidCode)
    #expect(try await fixture.prove(["recovery_code": codes[4], "code": ""]) == nil, "forms send empty fields")
  }

  @Test("creates new recovery codes, which invalidate the old ones") func regeneration() async throws {
    var fixture = AuthenticatorFixture()
    let codes = try await fixture.setUp()
    let shown = try fixture.asked(
      try await fixture.provider.submit(fixture.step(.change), .typed(["code": try fixture.code()])))
    guard case .list(let new)? = shown.shown.last,
      case .proved(let proof) = try await fixture.provider.submit(
        fixture.step(.change, state: shown.state), .typed([:])),
      case .replaceOnce(let kept) = proof.record
    else {
      Issue.record("no new codes")
      return
    }
    fixture.record = kept
    #expect(try await fixture.prove(["recovery_code": codes[0]]) == .invalidCode)
    #expect(try await fixture.prove(["recovery_code": new[0]]) == nil)
  }

  @Test("is removed only with a code") func removal() async throws {
    var fixture = AuthenticatorFixture()
    _ = try await fixture.setUp()
    #expect(try await fixture.prove(["code": "000000"], .disable) == .invalidCode)
    #expect(try await fixture.prove(["code": try fixture.code()], .disable) == nil)
    #expect(fixture.record == nil)
    guard case .refused("not_set_up") = try await fixture.provider.begin(fixture.step(.prove), .typed([:])) else {
      Issue.record("nothing to prove")
      return
    }
  }

  @Test("asks the same without an account, and refuses every code") func isIndependentOfTheAccount() async throws {
    var fixture = AuthenticatorFixture()
    _ = try await fixture.setUp()
    let known = try fixture.asked(try await fixture.provider.begin(fixture.step(.prove), .typed([:])))
    fixture.hasAccount = false
    let unknown = try fixture.asked(try await fixture.provider.begin(fixture.step(.prove), .typed([:])))
    #expect(known.fields == unknown.fields && known.state == unknown.state && known.shown == unknown.shown)
    #expect(try await fixture.prove(["code": try fixture.code()]) == .invalidCode)
    let ofNoKey = String(
      decoding: TimeCode.code(TimeCode.step(at: fixture.now), key: [UInt8](repeating: 0, count: 20)), as: UTF8.self)
    #expect(try await fixture.prove(["code": ofNoKey]) == .invalidCode)
    #expect(try await fixture.prove(["recovery_code": "AAAAA-AAAAA"]) == .invalidCode)
  }

  @Test(
    "a malformed code is not an attempt",
    arguments: [
      [:], ["code": ""], ["code": "12345"], ["code": "1234567"], ["code": "12345a"], ["recovery_code": "ABCDE"],
      ["code": "123456", "recovery_code": "ABCDE-FGHIJ"],
    ] as [[String: String]])
  func malformed(fields: [String: String]) async throws {
    var fixture = AuthenticatorFixture()
    _ = try await fixture.setUp()
    #expect(throws: InputProblem.self) { try fixture.provider.check(fixture.step(.prove), .typed(fields)) }
    guard case .malformed = try await fixture.provider.submit(fixture.step(.prove), .typed(fields)) else {
      Issue.record("judged")
      return
    }
  }

  @Test(
    "accepts digits of any script, and every way to group them",
    arguments: [
      "१२३४५६", "١٢٣٤٥٦", "123-456", " 123 456 ", "123\u{2013}456", "\u{200B}123456", "123\u{00A0}456\n",
      "１２３ ４５６", "123\u{2212}456",
    ])
  func scripts(typed: String) throws {
    #expect(try TypedProof(.typed(["code": typed]), for: .prove) == .code(Array("123456".utf8)))
  }

  @Test(
    "accepts a recovery code in every way to group it",
    arguments: [
      "ABCDE-FGH23", "abcde fgh23", "ABCDE\u{00A0}FGH23", "ABCDE\u{2014}FGH23", "\u{FEFF}ABCDEFGH23\r\n",
      "ＡＢＣＤＥ－ＦＧＨ２３", "ａｂｃｄｅｆｇｈ23",
    ])
  func recoveryCodes(typed: String) throws {
    #expect(try TypedProof(.typed(["recovery_code": typed]), for: .prove) == .recovery(Array("ABCDEFGH23".utf8)))
  }

  @Test(
    "a letter of another alphabet is none of a recovery code",
    arguments: ["ABCDE-FGHſ3", "ABCDE-FGß23", "АBCDE-FGH23", "ABCDE_FGH23"])
  func foreignLetters(typed: String) { #expect(RecoveryCodes.read(typed) == nil) }

  @Test("the issuer is the same text in both places of the address") func issuer() {
    let address = KeyAddress.make(key: [1], issuer: "Wallet: EU", person: "a:b@example.com")
    #expect(address.hasPrefix("otpauth://totp/Wallet%20EU:ab@example.com?"))
    #expect(address.contains("&issuer=Wallet%20EU&"))
    #expect(KeyAddress.mistake(inIssuer: "Wallet: EU")?.hasSuffix("write \"Wallet EU\"") ?? false)
    #expect(KeyAddress.mistake(inIssuer: "Wallet EU") == nil)
  }

  /// A sentence that is changed only in English would be shown untranslated to everyone.
  @Test("has a Hindi translation of every text, and no others") func hindi() async throws {
    var fixture = AuthenticatorFixture()
    var said: Set<String> = []
    let begun = try fixture.asked(try await fixture.provider.begin(fixture.step(.set), .typed([:])))
    let key = try #require(try TOTPState(bytes: begun.state).key)
    let code = String(decoding: TimeCode.code(TimeCode.step(at: fixture.now), key: key), as: UTF8.self)
    let kept = try fixture.asked(
      try await fixture.provider.submit(fixture.step(.set, state: begun.state), .typed(["code": code])))
    _ = try await fixture.setUp()
    var shown = begun.shown + kept.shown
    for purpose in [StepPurpose.change, .disable] {
      shown += try fixture.asked(try await fixture.provider.begin(fixture.step(purpose), .typed([:]))).shown
    }
    for case .text(let text) in shown { said.insert(text) }
    for (fields, purpose) in [
      (["code": "1"], StepPurpose.prove), (["recovery_code": "1"], .prove),
      (["code": "123456", "recovery_code": "ABCDE-FGH23"], .prove),
      ([:], .prove),
    ] {
      do throws(InputProblem) { _ = try TypedProof(.typed(fields), for: purpose) } catch { said.insert(error.detail) }
    }
    let descriptor = fixture.provider.descriptor
    let words = try #require(descriptor.words)
    said.formUnion(
      [words.title, words.instruction] + Array(words.labels.values) + Array(words.links.values)
        + Array(words.page.values)
        + descriptor.outcomes.map(\.sentence))
    #expect(Set(words.translations(in: "hi").keys) == said)
    #expect(words.translations(in: "hi-IN") == words.translations(in: "hi") && words.translations(in: "ja") == [:])
    #expect(words.translations(in: "hi").values.allSatisfy { !$0.contains(/[a-z]{3}/) })
    #expect(descriptor.mistakes == [])
  }

  @Test("declares its outcomes") func descriptor() {
    let descriptor = TOTP().descriptor
    #expect(descriptor.secretSpace == 333_333, "three of a million codes are valid at any time")
    #expect(Set(descriptor.outcomes.map(\.reason)) == [.invalidCode, .alreadySet, "code_used", "not_set_up"])
    #expect(!descriptor.hashesSecrets && descriptor.identifierKinds.isEmpty && descriptor.beginFields.isEmpty)
    let said = descriptor.policy.text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    #expect(said.contains(#"max = 5, window = "24h", counts = "failures", lock = { "30m", "3h", "12h", "24h" }"#))
  }
}
