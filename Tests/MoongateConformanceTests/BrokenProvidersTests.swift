import MoongateConformance
import MoongateSDK
import Testing

/// The suite can fail: each of these providers breaks one rule, and the suite reports that rule and no other.
@Suite struct BrokenProvidersTests {
  struct Broken: Sendable, CustomTestStringConvertible {
    let what: String
    let rule: ConformanceRule
    let provider: any Provider
    var subject: ConformanceSubject?
    var testDescription: String { "\(rule.rawValue): \(what)" }
  }

  @Test(arguments: broken) func failsOnTheRightRule(_ broken: Broken) async {
    let report = await Conformance.run(broken.provider, broken.subject, patience: .milliseconds(400))
    #expect(
      Set(report.findings.map(\.rule)) == [broken.rule], "\(report.findings.map(\.description).joined(separator: "\n"))"
    )
    for finding in report.findings { #expect(finding.seen.hasSuffix(".") || finding.seen.contains(":")) }
    #expect(report.lines.first { $0.rule == broken.rule }?.verdict == .broken)
    #expect(report.lines.map(\.rule) == ConformanceRule.allCases)
  }

  @Test func everyRuleHasABrokenProvider() { #expect(Set(Self.broken.map(\.rule)) == Set(ConformanceRule.allCases)) }

  @Test(arguments: [ToyChannel() as any Provider, ToyWord(), choosing(compares: true)]) func thoseThatAreNotBrokenPass(
    _ provider: any Provider
  ) async {
    #expect(await Conformance.run(provider).findings == [])
  }

  @Test func providerThatHoldsARulePasses() async {
    let report = await Conformance.run(ToyTick(), ToyTick.subject)
    #expect(report.findings == [])
    for rule in [ConformanceRule.expiry, .concurrency, .proof, .refusals] {
      #expect(report.lines.contains { $0.rule == rule && $0.verdict == .held })
    }
  }

  @Test func upgradeOfOlderRecordsIsChecked() async {
    let (provider, subject) = Self.upgrading { old, _ in Array("old:".utf8) + old }
    let report = await Conformance.run(provider, subject)
    #expect(report.findings == [])
    #expect(report.lines.first { $0.rule == .upgrade }?.verdict == .held)
    // Without an old record, the rule does not apply, and the report says what is missing.
    let (_, nothing) = Self.upgrading(from: nil) { old, _ in old }
    let unjudged = await Conformance.run(provider, nothing, rules: [.upgrade])
    guard case .doesNotApply(let why)? = unjudged.lines.first?.verdict else {
      return #expect(Bool(false), "\(unjudged.lines)")
    }
    #expect(why.contains("`old_records`"))
  }

  /// The finding contains the answer of the setup step, which is the cause.
  @Test func failingSetupIsReportedWithItsCause() async {
    let odd = ToyWord(submits: { _, _ in throw ToyWord.Fault(text: "the hub is down") })
    let report = await Conformance.run(odd, rules: [.proof])
    #expect(report.findings.map(\.rule) == [.proof])
    #expect(report.findings.first?.seen.contains("answers: `submit` throws (") ?? false, "\(report.findings)")
    #expect(report.findings.first?.seen.contains("the hub is down") ?? false)
  }

  /// Two runs give the same report.
  @Test func repeatedRunsGiveTheSameReport() async {
    let leaky = ToyChannel(delivers: { code, identifier, tools throws(DeliveryFault) in
      tools.log.info("sent \(code.code)")
      try await ToyChannel.send(code, identifier, tools)
    })
    #expect(await Conformance.run(leaky) == Conformance.run(leaky))
  }

  static let broken: [Broken] = channels + words + ticks + answers + rounds + records + declarations

  // MARK: code providers

  private static func channel(
    _ what: String, _ rule: ConformanceRule, _ descriptor: ProviderDescriptor = ToyChannel.described(),
    _ delivers: @escaping @Sendable (CodeMessage, Identifier, StepTools) async throws(DeliveryFault) -> Void
  ) -> Broken { Broken(what: what, rule: rule, provider: ToyChannel(descriptor: descriptor, delivers: delivers)) }

  private static func reader(
    _ what: String, _ rule: ConformanceRule,
    _ reads: @escaping @Sendable (ProviderInput) throws(InputProblem) -> Identifier
  )
    -> Broken
  {
    Broken(what: what, rule: rule, provider: ToyChannel(reads: reads))
  }

  static func described(_ what: String, _ descriptor: ProviderDescriptor) -> Broken {
    Broken(what: what, rule: .descriptor, provider: ToyChannel(descriptor: descriptor))
  }

  private static let stale = SharedValue<StepTools?>(nil)
  private static let deliveries = SharedValue(0)

  private static let channels: [Broken] = [
    described(
      "no limit on verify per person",
      ToyChannel.described(
        policy:
          #"return policy "toy" { limits = { send = { on = "send", per = "email", max = 4, window = "15m" }, verify = { on = "verify", per = "ip", max = 5, window = "1h" } } }"#
      )),
    described(
      "another provider's policy",
      ToyChannel.described(
        policy:
          #"return policy "toys" { limits = { send = { on = "send", per = "email", max = 4, window = "15m" }, verify = { on = "verify", per = "email", max = 5, window = "1h" } } }"#
      )),
    described(
      "a limit that is only a comment",
      ToyChannel.described(
        policy:
          "return policy \"toy\" { limits = { send = { on = \"send\", per = \"email\" },\n-- v = { on = \"verify\", per = \"email\" }\n} }"
      )),
    described("written for the future", ToyChannel.described(sdk: SDKVersion.current + 1)),
    described("a setting without help", ToyChannel.described(help: "")),
    described(
      "a second field at submit",
      ToyChannel.described(submit: [InputField(name: "code", kind: .digits), InputField(name: "pin", kind: .digits)])),
    Broken(what: "another declaration at each call", rule: .descriptor, provider: Shifty()),
    reader("case makes two people of one", .spelling) { input throws(InputProblem) in
      let typed = try input.text("email").filter { $0 != " " }
      _ = try input.email()
      return Identifier(kind: .email, value: typed, display: typed, attributes: ["domain": "example.com"])
    },
    reader("everybody is one", .spelling) { input throws(InputProblem) in
      let read = try input.email()
      return Identifier(
        kind: .email, value: "everybody@example.com", display: read.display, attributes: read.attributes)
    },
    reader("carries what is not declared", .facts) { input throws(InputProblem) in
      let read = try input.email()
      return Identifier(
        kind: .email, value: read.value, display: read.display, attributes: ["domain": "x", "age": "12"])
    },
    reader("takes anything", .malformed) { input throws(InputProblem) in
      guard case .text(let typed)? = input.fields["email"] else {
        throw InputProblem(field: "email", reason: .invalidEmail, detail: "An address, please.")
      }
      let plain = typed.lowercased().unicodeScalars.filter { $0.value > 0x20 && $0.value < 0x7f }
      let value = "to:" + String(String.UnicodeScalarView(plain)).prefix(200)
      return Identifier(kind: .email, value: value, display: "", attributes: [:])
    },
    reader("a problem of no field", .malformed) { input throws(InputProblem) in
      do throws(InputProblem) { return try input.email() } catch {
        throw InputProblem(field: "address", reason: .invalidEmail, detail: error.detail)
      }
    },
    channel("sends it twice", .delivery) { code, identifier, tools throws(DeliveryFault) in
      try await ToyChannel.send(code, identifier, tools)
      try await ToyChannel.send(code, identifier, tools)
    },
    channel("sends it to itself as well as nowhere else", .delivery) { code, identifier, tools throws(DeliveryFault) in
      try await tools.send(Message(channel: .mail, to: "copy@vendor.example", text: code.text, code: code.code))
    },
    channel("words it otherwise", .delivery) { code, identifier, tools throws(DeliveryFault) in
      try await tools.send(
        Message(
          channel: .mail, to: identifier.value, text: "It is \(code.code), as in \(code.text.suffix(4))",
          code: code.code))
    },
    Broken(
      what: "remembers whom it has sent to", rule: .beginTwice,
      provider: ToyChannel(delivers: { code, identifier, tools throws(DeliveryFault) in
        // The third and later messages are not sent.
        if deliveries.change({ $0 + 1 }) == 1 { return }
        try await ToyChannel.send(code, identifier, tools)
      })),
    channel("swallows what fails", .faults) { code, identifier, tools throws(DeliveryFault) in
      do throws(DeliveryFault) { try await ToyChannel.send(code, identifier, tools) } catch {}
    },
    channel("logs the code", .secrets) { code, identifier, tools throws(DeliveryFault) in
      tools.log.notice("sending", ["code": code.code])
      try await ToyChannel.send(code, identifier, tools)
    },
    channel("logs the code backwards, in dashes", .secrets) { code, identifier, tools throws(DeliveryFault) in
      tools.log.notice(code.code.reversed().map(String.init).joined(separator: "-"))
      try await ToyChannel.send(code, identifier, tools)
    },
    channel("logs its token in base64", .secrets) { code, identifier, tools throws(DeliveryFault) in
      tools.log.notice("sending", ["auth": "cGxhbnRlZC10b2tlbi1jNDFmN2JlMDJk"])
      try await ToyChannel.send(code, identifier, tools)
    },
    channel("tells the code in its fault", .secrets) { code, identifier, tools throws(DeliveryFault) in
      do throws(DeliveryFault) { try await ToyChannel.send(code, identifier, tools) } catch {
        throw DeliveryFault(reason: "could not send \(code.text)")
      }
    },
    channel("has the code in its subject", .secrets) { code, identifier, tools throws(DeliveryFault) in
      try await tools.send(
        Message(channel: .mail, to: identifier.value, subject: "\(code.code)!", text: code.text, code: code.code))
    },
    channel("tries for ever", .cancellation) { code, identifier, tools throws(DeliveryFault) in
      // A wait that ignores cancellation.
      do throws(DeliveryFault) { try await ToyChannel.send(code, identifier, tools) } catch {
        guard error.reason.contains("cancelled") else { throw error }
        await Task.detached { try? await Task.sleep(for: .seconds(1)) }.value
        throw error
      }
    },
    channel("keeps its tools", .cleanup) { code, identifier, tools throws(DeliveryFault) in
      stale.value?.log.info("the one before has been sent")
      stale.value = tools
      try await ToyChannel.send(code, identifier, tools)
    },
  ]

  // MARK: word providers

  static func word(_ what: String, _ rule: ConformanceRule, _ submits: @escaping ToyWord.Submit) -> Broken {
    Broken(what: what, rule: rule, provider: ToyWord(submits: submits))
  }

  static func opening(_ what: String, _ rule: ConformanceRule, _ begins: @escaping ToyWord.Begin) -> Broken {
    Broken(what: what, rule: rule, provider: ToyWord(begins: begins))
  }

  private static let state = SharedValue<[UInt8]>([])
  private static let tries = SharedValue(0)
  private static let working = SharedValue(0)

  private static let words: [Broken] = [
    opening("proves in begin", .proof) { step, _ in
      step.purpose == .prove ? .proved(Proof()) : .ask([ToyWord.word], state: [])
    },
    word("proves nobody", .proof) { step, input in
      step.purpose == .set ? try await ToyWord.check(step, input) : .refused("wrong_word")
    },
    word("sets what is set", .proof) { step, input in
      guard step.purpose == .set, let hasher = step.tools.hasher else { return try await ToyWord.check(step, input) }
      return .proved(Proof(record: .replaceOnce(Array(try await hasher.hash(try ToyWord.typed(input)).utf8))))
    },
    word("proves what it does not declare", .proof) { step, input in
      guard case .proved(let proof) = try await ToyWord.check(step, input) else { return .refused("wrong_word") }
      return .proved(
        Proof(
          proved: step.purpose == .prove ? [Identifier(kind: .phone, value: "+919999999999", display: "")] : [],
          record: proof.record))
    },
    Broken(
      what: "keeps one step for all", rule: .beginTwice,
      provider: ToyWord(
        begins: { step, _ in
          let own = step.tools.randomBytes(8)
          state.value = own
          return .ask([ToyWord.word], state: own)
        },
        submits: { step, input in
          state.value == step.state ? try await ToyWord.check(step, input) : .refused("wrong_word")
        })),
    word("throws where it should refuse", .refusals) { step, input in
      guard case .refused = try await ToyWord.check(step, input) else { return try await ToyWord.check(step, input) }
      throw ToyWord.Fault()
    },
    word("counts by itself", .refusals) { step, input in
      let answer = try await ToyWord.check(step, input)
      if step.purpose != .prove { return answer }
      if case .refused = answer {
        _ = tries.change { $0 + 1 }
        return answer
      }
      return tries.change { _ in 0 } >= 5 && step.account != nil ? .refused("wrong_word") : answer
    },
    Broken(
      what: "refuses with what it does not declare", rule: .outcomes,
      provider: ToyWord(descriptor: ToyWord.described(outcomes: [Outcome("other_word", "No.")]))),
    word("takes a broken hasher for a wrong word", .faults) { step, input in
      do { return try await ToyWord.check(step, input) } catch { return .refused("wrong_word") }
    },
    word("takes a broken hasher for a right word", .faults) { step, input in
      do { return try await ToyWord.check(step, input) } catch { return .proved(Proof()) }
    },
    word("keeps the word itself", .secrets) { step, input in
      let answer = try await ToyWord.check(step, input)
      guard case .proved(let proof) = answer, step.purpose == .prove, case .keep = proof.record else { return answer }
      return .proved(Proof(record: .replace(try ToyWord.typed(input))))
    },
    word("keeps the word in hexadecimal", .secrets) { step, input in
      let answer = try await ToyWord.check(step, input)
      guard case .proved = answer, step.purpose == .prove else { return answer }
      return .proved(
        Proof(
          record: .replace(
            Array(try ToyWord.typed(input).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined().utf8))))
    },
    word("quotes the word in its error", .secrets) { step, input in
      do { return try await ToyWord.check(step, input) } catch { throw ToyWord.Fault(text: try input.text("word")) }
    },
    Broken(
      what: "quotes the word to the person", rule: .secrets,
      provider: ToyWord(checks: { input throws(InputProblem) in
        try ToyWord.check(input)
        let typed = try input.text("word")
        if typed.contains("penguin") {
          throw InputProblem(field: "word", reason: .weakPassword, detail: "\(typed.prefix(100)) is too easy.")
        }
      }), subject: quoted),
    opening("sends its token along", .secrets) { step, _ in
      .ask([ToyWord.word], state: [], showing: [.qr("otpauth://x?secret=\(step.tools.settings.secret("token") ?? "")")])
    },
    opening("asks strangers for something else", .unknown) { step, _ in
      .ask(step.account == nil ? [ToyWord.word, InputField(name: "captcha", kind: .text)] : [ToyWord.word], state: [])
    },
    word("does no work for strangers", .unknown) { step, input in
      step.purpose == .prove && step.account?.record == nil
        ? .refused("wrong_word") : try await ToyWord.check(step, input)
    },
    Broken(
      what: "reveals that no account exists", rule: .unknown,
      provider: ToyWord(
        descriptor: ToyWord.described(outcomes: [
          Outcome("wrong_word", "No."), Outcome("nobody", "There is nobody.", isFailure: false),
        ]),
        submits: { step, input in
          let answer = try await ToyWord.check(step, input)
          return step.account == nil ? .refused("nobody") : answer
        })),
    Broken(
      what: "throws what is malformed", rule: .malformed,
      provider: ToyWord(
        checks: { _ throws(InputProblem) in },
        submits: { step, input in
          guard case .text(let typed)? = input.fields["word"], typed.utf8.count < 60_000 else { throw ToyWord.Fault() }
          return try await ToyWord.check(step, input)
        })),
    word("one at a time, or not at all", .concurrency) { step, input in
      guard step.purpose == .prove, step.account?.record != nil else { return try await ToyWord.check(step, input) }
      let others = working.change { $0 + 1 }
      defer { _ = working.change { $0 - 1 } }
      if others > 0 { return .refused("wrong_word") }
      // Long enough for concurrent calls.
      for _ in 0..<200 { await Task.yield() }
      return try await ToyWord.check(step, input)
    },
    word("leaves the record when it is disabled", .cleanup) { step, input in
      let answer = try await ToyWord.check(step, input)
      guard case .proved = answer, step.purpose == .disable else { return answer }
      return .proved(Proof())
    },
    word("waits for what does not come", .cancellation) { step, input in
      do { return try await ToyWord.check(step, input) } catch {
        guard error is CancellationError else { throw error }
        await Task.detached { try? await Task.sleep(for: .seconds(1)) }.value
        throw error
      }
    },
  ]

  /// The provider rejects this wrong answer as too easy, so it is not an attempt. The test checks its message.
  private static let quoted: ConformanceSubject = {
    var subject = ConformanceSubject(of: ToyWord.described())
    subject.wrong = { step in step.fields.isEmpty ? nil : ["word": .text("quite another word")] }
    subject.malformedSubmits = [["word": .text("a very quiet penguin")]]
    return subject
  }()

  // MARK: tick providers

  private static let ticks: [Broken] = [
    Broken(what: "a tick too long", rule: .expiry, provider: ToyTick(grace: 1), subject: ToyTick.subject),
    Broken(what: "a tick too short", rule: .expiry, provider: ToyTick(grace: -1), subject: ToyTick.subject),
    Broken(
      what: "once, but twice at once", rule: .concurrency, provider: ToyTick(isOnce: false), subject: ToyTick.subject),
    Broken(what: "again and again", rule: .concurrency, provider: ToyTick(looks: false), subject: ToyTick.subject),
  ]
}

/// A descriptor that changes with every call.
private struct Shifty: CodeProvider {
  let count = SharedValue(0)

  var descriptor: ProviderDescriptor { ToyChannel.described(help: "For the \(count.change { $0 + 1 })th time.") }

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier { try input.email() }

  func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault) {
    try await ToyChannel.send(code, identifier, tools)
  }
}
