import MoongateSDK

/// Runs the steps of a full provider for one user. The suite plays the part of the core: it keeps state and record,
/// passes on only requested fields, and calls `check` before `submit`.
struct DryRun: Sendable {
  let harness: ConformanceHarness
  let provider: any FullProvider
  /// The account's record.
  var record: [UInt8]?
  /// Whether there is an account.
  var hasAccount = true
  var accountID = "ac_suite"
  /// The user of `begin`, if it reads an identifier.
  var named: Identifier?

  /// An open step.
  struct Opened: Sendable {
    let purpose: StepPurpose
    let fields: [InputField]
    let shown: [Shown]
    let redirect: String?
    /// The time until the step is polled; nil if it does not wait.
    var poll: Duration?
    let state: [UInt8]

    /// Whether a field reaches the provider because the step asks for it. All fields of a callback do.
    func asks(for name: String) -> Bool { redirect != nil || fields.contains { $0.name == name } }
  }

  /// The result of a call, with the tools that it used.
  struct CallResult: Sendable {
    enum Answer: Sendable {
      case opened(Opened)
      case proved(Proof)
      /// - then: the next round of the step.
      case refused(RefusalReason, then: Opened?)
      case malformed(InputProblem)
      case threw(InspectedError)
      case late

      /// The answer in a few words.
      var word: String {
        switch self {
        case .opened: "asks"
        case .proved: "proves"
        case .refused(let reason, _): "refuses with `\(reason.rawValue)`"
        case .malformed: "reports malformed input"
        case .threw: "throws"
        case .late: "does not answer"
        }
      }
    }

    let answer: Answer
    let capabilities: RecordedCapabilities
  }

  /// The fields of `begin`.
  var beginFields: [String: InputValue] {
    named == nil ? [:] : harness.declared(harness.subject.spellings.first ?? [:])
  }

  /// - Parameter along: additional client fields, for example those of `submit`.
  func begin(
    _ purpose: StepPurpose, _ capabilities: RecordedCapabilities = RecordedCapabilities(),
    along: [String: InputValue] = [:]
  ) async
    -> CallResult
  {
    let context = context(purpose, state: [], asked: harness.descriptor.beginFields, capabilities, hashes: false)
    let input = harness.input(beginFields.merging(harness.declared(along)) { own, _ in own })
    if harness.watched == nil {
      harness.trace.record(TracedCall(hidesKept: harness.trace.hides).text("begin", context, input))
    }
    let result = CallResult(
      answer: answer(
        await harness.call(capabilities) { [provider] in try await provider.begin(context, input) }, purpose),
      capabilities: capabilities
    )
    look(at: result, purpose, typed: [])
    return result
  }

  /// Submits the requested fields, like the core does.
  /// - Parameter unasked: additional fields that are submitted although they were not requested.
  func submit(
    _ opened: Opened, _ fields: [String: InputValue], _ capabilities: RecordedCapabilities = RecordedCapabilities(),
    unasked: [String: InputValue] = [:]
  ) async -> CallResult {
    let context = context(opened.purpose, state: opened.state, asked: opened.fields, capabilities, hashes: true)
    let fields = fields.filter { opened.asks(for: $0.key) }
    let input = harness.input(fields.merging(unasked) { asked, _ in asked })
    let typed = Self.secrets(input.fields.filter { !harness.subject.uncompared.contains($0.key) }, opened)
    for text in typed where !Anomalies.texts.contains(text) { harness.trace.hide(text, as: "answer") }
    if harness.watched == nil {
      harness.trace.record(TracedCall(hidesKept: harness.trace.hides).text("submit", context, input))
    }
    let answer: CallResult.Answer
    do throws(InputProblem) {
      try provider.check(context, input)
      answer = self.answer(
        await harness.call(capabilities) { [provider] in try await provider.submit(context, input) }, opened.purpose)
    } catch {
      answer = .malformed(error)
    }
    capabilities.end()
    let result = CallResult(answer: answer, capabilities: capabilities)
    look(at: result, opened.purpose, typed: typed)
    // Skip anomalies: values like `null` and `-1` can occur in any line.
    switch answer {
    case .proved, .refused: harness.typedEver.add(typed.filter { !Anomalies.texts.contains($0) })
    case .opened, .malformed, .threw, .late: break
    }
    return result
  }

  /// The secret values of the fields: all except those of the identifier and of an error of another site.
  static func secrets(_ fields: [String: InputValue], _ opened: Opened) -> [String] {
    fields.compactMap { name, value in
      guard case .text(let text) = value, !ProviderDescriptor.plainCallbackFields.contains(name) else { return nil }
      let kind = opened.fields.first { $0.name == name }?.kind
      return kind == .email || kind == .phone || kind == .region ? nil : text
    }
  }

  func context(
    _ purpose: StepPurpose, state: [UInt8], asked: [InputField], _ capabilities: RecordedCapabilities, hashes: Bool
  ) -> StepContext {
    let identifiers = harness.subject.identifiers.isEmpty ? [named].compactMap(\.self) : harness.subject.identifiers
    return StepContext(
      flow: harness.subject.flows[purpose] ?? "login", purpose: purpose,
      account: hasAccount ? StepAccount(id: accountID, record: record, identifiers: identifiers) : nil,
      identifier: named, state: state,
      now: harness.now,
      callback: Callback(
        address: "https://auth.example.com/auth/callback/\(harness.descriptor.name)", state: "suite-callback-state-5d1c"
      ),
      asked: asked, tools: harness.tools(capabilities, hashes: hashes))
  }

  private func answer(_ called: Called<StepAnswer>, _ purpose: StepPurpose) -> CallResult.Answer {
    switch called {
    case .late: .late
    case .threw(let thrown): .threw(thrown)
    case .answered(.ask(let fields, let state, let shown)):
      .opened(opened(.ask(fields, state: state, showing: shown), purpose))
    case .answered(.redirect(let site, let state)):
      .opened(Opened(purpose: purpose, fields: [], shown: [], redirect: site, state: state))
    case .answered(.wait(let poll, let state, let shown)):
      .opened(Opened(purpose: purpose, fields: [], shown: shown, redirect: nil, poll: poll, state: state))
    case .answered(.proved(let proof)): .proved(proof)
    case .answered(.refused(let reason)): .refused(reason, then: nil)
    case .answered(.refusedAndAsked(let reason, let round)): .refused(reason, then: opened(round, purpose))
    case .answered(.malformed(let problem)): .malformed(problem)
    }
  }

  private func opened(_ round: StepAnswer.Round, _ purpose: StepPurpose) -> Opened {
    Opened(purpose: purpose, fields: round.fields, shown: round.shown, redirect: nil, state: round.state)
  }

  // MARK: checks of every answer

  private func look(at result: CallResult, _ purpose: StepPurpose, typed: [String]) {
    if harness.watched == nil { harness.trace.record(TracedCall(hidesKept: harness.trace.hides).text(result.answer)) }
    harness.check(result.capabilities, typed: typed)
    switch result.answer {
    case .opened(let opened):
      look(at: opened)
    case .proved(let proof): look(at: proof, purpose, typed: typed)
    case .refused(let reason, let then):
      if let then { look(at: then) }
      harness.markChecked(.outcomes)
      if harness.descriptor.outcome(reason) == nil {
        harness.addFinding(
          .outcomes, "It refuses with `\(reason.rawValue.prefix(60))`, which it does not declare.",
          "Add it to the descriptor's `outcomes`; until then the core answers 503.")
      }
      harness.checkText(reason.rawValue, "the reason of a refusal", typed: typed)
    case .malformed(let problem):
      harness.check(problem)
      harness.checkText(problem.detail, "the sentence of an InputProblem", typed: typed)
    case .threw(let thrown): harness.checkText(thrown.text, "a fault", typed: typed)
    case .late: break
    }
  }

  private func look(at opened: Opened) {
    if let redirect = opened.redirect {
      harness.checkText(redirect, "the address that the person is sent to", typed: [])
    } else {
      harness.checkRound(opened)
    }
    for shown in opened.shown { harness.checkText("\(shown)", "what the person is shown", typed: []) }
  }

  private func look(at proof: Proof, _ purpose: StepPurpose, typed: [String]) {
    harness.checkOnce(proof, purpose)
    harness.checkFacts(of: proof)
    for identifier in proof.proved + proof.attested + proof.claimed {
      harness.checkFacts(of: identifier)
      if !harness.descriptor.identifierKinds.contains(identifier.kind) {
        harness.addFinding(
          .proof, "It proves an identifier of the kind `\(identifier.kind.rawValue)`, which it does not declare.",
          "Name the kind in `identifierKinds`.")
      }
    }
    guard let bytes = proof.record.bytes else { return }
    harness.markChecked(.secrets)
    if SecretSearch(typed).isIn(bytes) || SecretSearch(harness.planted.values).isIn(bytes) {
      harness.addFinding(
        .secrets, "The account's record contains a secret, in plain text or in an encoding.",
        "Keep what `tools.hasher` makes of it, not the secret itself.")
    }
  }
}

extension Proof.Record {
  /// The new record.
  var bytes: [UInt8]? {
    switch self {
    case .replace(let bytes), .replaceOnce(let bytes): bytes
    case .keep, .remove: nil
    }
  }
}
