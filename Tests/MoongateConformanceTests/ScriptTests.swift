@testable import MoongateConformance
import MoongateSDK
import Testing

/// Scripted answers, traces, and their parts.
@Suite struct ScriptTests {
  @Test(arguments: [
    ToyRounds(), ToyRounds(judgesAtEnd: true),
    ToyRounds(then: { _ in .ask([ToyRounds.first], state: Array("1".utf8)) }),
  ])
  func roundsAreFollowedToTheirEnd(_ provider: ToyRounds) async {
    let report = await Conformance.run(provider, ToyRounds.subject)
    #expect(report.findings == [])
    for rule in [
      ConformanceRule.proof, .rounds, .askedFields, .beginTwice, .concurrency, .refusals, .counted, .wholeAnswer,
    ] {
      #expect(report.lines.contains { $0.rule == rule && $0.verdict == .held }, "\(rule)")
    }
  }

  /// Fields that are not part of the answer are listed as uncompared.
  @Test func aFieldThatIsNotComparedCanBeNamed() async {
    let fields = [ToyWord.word, InputField(name: "label", kind: .text)]
    let provider = ToyWord(descriptor: ToyWord.described(submit: fields), begins: { _, _ in .ask(fields, state: []) })
    var subject = ConformanceSubject(of: provider.descriptor)
    #expect(await Conformance.run(provider, subject).findings.map(\.field) == ["label"])
    subject.uncompared = ["label"]
    #expect(await Conformance.run(provider, subject).findings == [])
  }

  // MARK: values

  private static func step(_ shown: [Shown], _ fields: [String] = ["code"], now: Int64 = 59_000)
    -> ConformanceSubject.Step
  {
    ConformanceSubject.Step(
      purpose: .prove, fields: fields.map { InputField(name: $0, kind: .text) }, shown: shown, redirect: nil, now: now)
  }

  private static func subject(_ right: [String: ScriptedValue], keeping: [String: String] = [:]) -> ConformanceSubject {
    var subject = ConformanceSubject(of: ToyRounds().descriptor)
    subject.answers(right: right, wrong: nil, keeping: keeping)
    return subject
  }

  @Test func shownContentIsRememberedUntilReset() async throws {
    let subject = Self.subject(["code": .shown("list.1")])
    _ = try await subject.right(Self.step([.list(["a", "b"]), .text("Keep these.")], []))
    #expect(try await subject.right(Self.step([])) == ["code": .text("b")])
    _ = try await subject.right(Self.step([.list(["c", "d"])], []))
    #expect(try await subject.right(Self.step([.text("More.")])) == ["code": .text("d")])
    await subject.reset()
    await #expect(throws: ScriptProblem.self) { try await subject.right(Self.step([])) }
  }

  @Test func problemNamesTheFieldAndTheShownContent() async throws {
    let subject = Self.subject(["code": .shown("list.2")])
    await #expect {
      try await subject.right(Self.step([.qr("x"), .text("y")]))
    } throws: {
      "\($0)" == "the subject's `right.code`: the provider has shown no `list` yet (it has shown qr, text)"
    }
    await #expect {
      try await subject.right(Self.step([.list(["a"])]))
    } throws: {
      "\($0)" == "the subject's `right.code`: the provider has shown 1 of `list`, and \"list.2\" is number 3"
    }
  }

  /// RFC 6238 appendix B.
  @Test(arguments: [
    (TOTPRecipe.Algorithm.sha1, "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", Int64(59_000), "94287082"),
    (.sha1, "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", 1_111_111_109_000, "07081804"),
    (.sha256, "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZA", 59_000, "46119246"),
  ]) func authenticatorCodesMatchTheStandard(
    _ algorithm: TOTPRecipe.Algorithm, _ key: String, _ now: Int64, _ code: String
  ) async throws {
    let recipe = TOTPRecipe(of: "key", digits: 8, algorithm: algorithm)
    for shown in [Shown.secret(key), .qr("otpauth://totp/A:b?secret=\(key)&issuer=A")] {
      #expect(
        try await Self.subject(["code": .totp(recipe)]).right(Self.step([shown], now: now)) == ["code": .text(code)])
    }
    #expect(
      try await Self.subject(["code": .totp(recipe)], keeping: ["key": key]).right(Self.step([], now: now)) == [
        "code": .text(code)
      ])
  }

  @Test func keyMustBeBase32() async throws {
    let subject = Self.subject(["code": .totp(TOTPRecipe(of: "key"))])
    await #expect(throws: ScriptProblem.self) { try await subject.right(Self.step([])) }
    await #expect(throws: ScriptProblem.self) { try await subject.right(Self.step([.secret("not base32!")])) }
  }

  /// FIPS 180-4 and RFC 1321, over the ends of blocks.
  @Test func digestsAreThoseOfTheStandards() {
    #expect(Hex.text(Digest.md5.of(Array("abc".utf8))) == "900150983cd24fb0d6963f7d28e17f72")
    #expect(Hex.text(Digest.sha1.of(Array("abc".utf8))) == "a9993e364706816aba3e25717850c26c9cd0d89d")
    #expect(
      Hex.text(Digest.sha256.of(Array("abc".utf8)))
        == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    let long = Array(String(repeating: "a", count: 119).utf8)
    #expect(Hex.text(Digest.sha256.of(long)) == "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb")
    #expect(Hex.text(Digest.md5.of(long)) == "8a7bd0732ed6a28ce75f6dabc90e1613")
  }

  @Test func everyPartOfAnAnswerIsAltered() {
    let all = AlteredAnswer.all(of: "ab-12")
    #expect(all.map(\.text) == ["ba-12", "ab-21", "bb-12", "aa-12", "ab-22", "ab-11", "ab-122", "ab-1", ""])
    #expect(all.first?.what == "word 1 of 2 changed" && !all.contains { $0.text == "ab-12" })
    // Some characters and both ends of a long answer.
    #expect(AlteredAnswer.all(of: String(repeating: "x1", count: 100)).count < 40)
    for answer in ["7", "Q", "qqqq", "a b", "\u{0661}\u{0662}"] {
      #expect(!AlteredAnswer.all(of: answer).contains { $0.text == answer })
    }
  }

  // MARK: single rules and traces

  @Test func oneRuleIsRunAlone() async {
    let broken = ToyWord(descriptor: ToyWord.described(outcomes: [Outcome("wrong_word", "No.", isFailure: false)]))
    let report = await Conformance.run(broken, rules: [.counted], trace: .withoutSecrets)
    #expect(report.lines == [ConformanceReport.Line(rule: .counted, verdict: .broken)])
    #expect(report.findings.map(\.field) == ["word"])
    #expect(
      report.findings.first?.seen.hasPrefix(
        "A wrong answer is not counted: it is refused with `wrong_word`, whose outcome is declared with `isFailure: false`"
      ) ?? false)
    #expect(report.messages.contains { $0.hasPrefix("→ submit(purpose: .prove") && $0.contains("word: \"‹answer›\"") })
    #expect(report.messages.contains("← .refused(\"wrong_word\")"))
    #expect(await Conformance.run(broken, rules: [.spelling]).findings == [])
    #expect(await Conformance.run(broken).messages == [])
  }

  /// Attack: a trace with a token or an answer is pasted into a ticket.
  @Test func aTraceHasNoSecretsUnlessTheyAreAskedFor() async {
    let leaky = ToyWord(begins: { step, _ in
      .ask(
        [ToyWord.word], state: [],
        showing: [.secret("shown-9d1f"), .list(["keep-77aa"]), .qr(step.tools.settings.secret("token") ?? "")])
    })
    let secrets = ["ninety-nine quiet pigeons", "planted-token-c41f7be02d", "shown-9d1f", "keep-77aa"]
    let masked = await Conformance.run(leaky, rules: [.proof], trace: .withoutSecrets).messages.joined(separator: "\n")
    let whole = await Conformance.run(leaky, rules: [.proof], trace: .complete).messages.joined(separator: "\n")
    for secret in secrets { #expect(!masked.contains(secret) && whole.contains(secret), "\(secret)") }
    #expect(masked.contains("‹secret token›") && masked.contains("‹shown›"))
  }

  /// Attack: a provider stores and logs what was typed in another spelling, and the trace with it is pasted into a
  /// ticket.
  @Test(arguments: [
    "Ninety-Nine Quiet Pigeons", "ninetyninequietpigeons", "NINETY NINE QUIET PIGEONS", "snoegip teiuq enin-ytenin",
    "6e696e6574792d6e696e6520717569657420706967656f6e73", "bmluZXR5LW5pbmUgcXVpZXQgcGlnZW9ucw",
    "bmluZXR5bmluZXF1aWV0cGlnZW9ucw",
    "ninety%2Dnine%20quiet%20pigeons", "ｎｉｎｅｔｙ－ｎｉｎｅ　ｑｕｉｅｔ　ｐｉｇｅｏｎｓ",
  ]) func aTraceHasNoNormalisedSecret(_ spelling: String) async {
    let leaky = ToyWord(begins: { _, _ in .ask([ToyWord.word], state: Array("kept-\(spelling)".utf8)) })
    let report = await Conformance.run(leaky, rules: [.proof], trace: .withoutSecrets)
    let text = report.messages.joined(separator: "\n")
    #expect(text.contains("‹answer›") && text.contains("‹state›"))
    #expect(!text.contains(spelling))
    let spellings = SecretSpellings([("ninety-nine quiet pigeons", "answer")])
    #expect(spellings.masked("log: \(spelling)!").hasPrefix("log: ‹answer›"))
  }

  @Test func maskingLeavesTheRest() {
    let spellings = SecretSpellings([("73-91-54", "code"), ("abc", "short")])
    #expect(spellings.masked("→ submit(fields: [pin: \"739154\"]) abc") == "→ submit(fields: [pin: \"‹code›\"]) abc")
    #expect(spellings.masked("‹code› 7 3 9 1 5 4, 739 155") == "‹code› ‹code›, 739 155")
    #expect(spellings.masked("") == "" && spellings.masked("739‹code›154") == "739‹code›154")
  }

  /// Findings about a program contain no names of the Swift API.
  @Test func findingsUseTheAPINamesOfTheProvidersLanguage() {
    #expect(ProviderLanguage.swift.translate("Answer `.refused`.") == "Answer `.refused`.")
    #expect(
      ProviderLanguage.python.translate("Answer `record: .replaceOnce(…)`, and keep what `tools.hasher` makes of it.")
        == "Answer `proved(record=…)`, and keep what `step.tools.hash(…)` makes of it.")
    #expect(
      ProviderLanguage.node.translate("Give `.refused(reason, then: …)` the `state` that its round needs.")
        == "Give `refused(reason, { then: ask(…) })` the `state` that its round needs.")
    #expect(ProviderLanguage.go.translate("Leave `isFailure: false` out.") == "Leave `Uncounted: true` out.")
    #expect(ProviderLanguage.names.allSatisfy { $0.count == 5 })
    #expect(
      ProviderLanguage.json.translate("its outcome is declared with `isFailure: false`")
        == "its outcome is declared with `\"counts\": false`")
    #expect(
      ProviderLanguage.json.translate("Answer `record: .replaceOnce(…)`:")
        == "Answer `\"record\": {\"replace\": …, \"once\": true}`:")
    #expect(
      ProviderLanguage.json.translate("keeps its record by `.replace(…)`")
        == "keeps its record by `record.replace` without `record.once`")
  }
}
