import MoongateSDK

/// One person's way through the steps of a full provider, with the core's part played by the suite: it keeps the state and the record, and calls
/// `check` before `submit`.
struct Rehearsal: Sendable {
  let stage: Stage
  let provider: any FullProvider
  /// The account's record.
  var record: [UInt8]?
  /// Whether there is an account at all.
  var hasAccount = true
  /// Whom `begin` names, where it does.
  var named: Identifier?

  /// A step that was opened.
  struct Opened: Sendable {
    let purpose: StepPurpose
    let fields: [InputField]
    let shown: [Shown]
    let redirect: String?
    let state: [UInt8]
  }

  /// What came of a call, with what was lent for it.
  struct Heard: Sendable {
    enum Answer: Sendable {
      case opened(Opened)
      case proved(Proof)
      case refused(RefusalReason)
      case malformed(InputProblem)
      case threw(Thrown)
      case late

      /// In a word.
      var word: String {
        switch self {
        case .opened: "asks"
        case .proved: "proves"
        case .refused(let reason): "refuses with `\(reason.rawValue)`"
        case .malformed: "says malformed"
        case .threw: "throws"
        case .late: "does not answer"
        }
      }
    }

    let answer: Answer
    let loan: Loan
  }

  /// The fields that `begin` gets.
  var beginFields: [String: InputValue] { named == nil ? [:] : stage.subject.spellings.first ?? [:] }

  func begin(_ purpose: StepPurpose, _ loan: Loan = Loan()) async -> Heard {
    let context = context(purpose, state: [], loan, hashes: false)
    let input = stage.input(beginFields)
    let heard = Heard(answer: answer(await stage.call(loan) { [provider] in try await provider.begin(context, input) }, purpose), loan: loan)
    look(at: heard, typed: [])
    return heard
  }

  func submit(_ opened: Opened, _ fields: [String: InputValue], _ loan: Loan = Loan(), looks: Bool = true) async -> Heard {
    let context = context(opened.purpose, state: opened.state, loan, hashes: true)
    // A step that is begun with all that it asks for is judged at once: then the fields of both come together.
    let input = stage.input(beginFields.merging(fields) { _, new in new })
    let answer: Heard.Answer
    do throws(InputProblem) {
      try provider.check(context, input)
      answer = self.answer(await stage.call(loan) { [provider] in try await provider.submit(context, input) }, opened.purpose)
    } catch {
      answer = .malformed(error)
    }
    loan.end()
    let heard = Heard(answer: answer, loan: loan)
    if looks { look(at: heard, typed: Self.secrets(fields, opened)) }
    // Not what is odd: `null` and `-1` stand in any line.
    switch answer {
    case .proved, .refused: stage.typedEver.add(Self.secrets(fields, opened).filter { !Oddities.texts.contains($0) })
    case .opened, .malformed, .threw, .late: break
    }
    return heard
  }

  /// What in these fields is a secret: whatever answers the step, but for what names the person.
  static func secrets(_ fields: [String: InputValue], _ opened: Opened) -> [String] {
    fields.compactMap { name, value in
      guard case .text(let text) = value else { return nil }
      let kind = opened.fields.first { $0.name == name }?.kind
      return kind == .email || kind == .phone || kind == .region ? nil : text
    }
  }

  func context(_ purpose: StepPurpose, state: [UInt8], _ loan: Loan, hashes: Bool) -> StepContext {
    let identifiers = stage.subject.identifiers.isEmpty ? [named].compactMap(\.self) : stage.subject.identifiers
    return StepContext(
      flow: stage.subject.flows[purpose] ?? "login", purpose: purpose,
      account: hasAccount ? StepAccount(id: "ac_suite", record: record, identifiers: identifiers) : nil, identifier: named, state: state,
      now: stage.now,
      callback: Callback(address: "https://auth.example.com/auth/callback/\(stage.descriptor.name)", state: "suite-callback-state-5d1c"),
      tools: stage.tools(loan, hashes: hashes))
  }

  private func answer(_ called: Called<StepAnswer>, _ purpose: StepPurpose) -> Heard.Answer {
    switch called {
    case .late: .late
    case .threw(let thrown): .threw(thrown)
    case .answered(.ask(let fields, let state, let shown)):
      .opened(Opened(purpose: purpose, fields: fields, shown: shown, redirect: nil, state: state))
    case .answered(.redirect(let site, let state)): .opened(Opened(purpose: purpose, fields: [], shown: [], redirect: site, state: state))
    case .answered(.proved(let proof)): .proved(proof)
    case .answered(.refused(let reason)), .answered(.refusedAndAsked(let reason, _)): .refused(reason)
    case .answered(.malformed(let problem)): .malformed(problem)
    }
  }

  // MARK: what holds for every answer

  private func look(at heard: Heard, typed: [String]) {
    stage.judge(heard.loan, typed: typed)
    switch heard.answer {
    case .opened(let opened):
      if let redirect = opened.redirect { stage.judgeText(redirect, "the address that the person is sent to", typed: []) }
      for shown in opened.shown { stage.judgeText("\(shown)", "what the person is shown", typed: []) }
    case .proved(let proof): look(at: proof, typed: typed)
    case .refused(let reason):
      stage.judges(.outcomes)
      if stage.descriptor.outcome(reason) == nil {
        stage.finds(
          .outcomes, "It refuses with `\(reason.rawValue.prefix(60))`, which it does not declare.",
          "Add it to the descriptor's `outcomes`; until then the core answers 503.")
      }
      stage.judgeText(reason.rawValue, "the reason of a refusal", typed: typed)
    case .malformed(let problem):
      stage.judge(problem)
      stage.judgeText(problem.detail, "the sentence of an InputProblem", typed: typed)
    case .threw(let thrown): stage.judgeText(thrown.text, "a fault", typed: typed)
    case .late: break
    }
  }

  private func look(at proof: Proof, typed: [String]) {
    for identifier in proof.proved + proof.attested + proof.claimed {
      stage.judgeFacts(of: identifier)
      if !stage.descriptor.identifierKinds.contains(identifier.kind) {
        stage.finds(
          .proof, "It proves an identifier of the kind `\(identifier.kind.rawValue)`, which it does not declare.",
          "Name the kind in `identifierKinds`.")
      }
    }
    guard let bytes = proof.record.bytes else { return }
    stage.judges(.secrets)
    if SecretSearch(typed).isIn(bytes) || SecretSearch(stage.planted.values).isIn(bytes) {
      stage.finds(
        .secrets, "A secret is in the account's record, as it is or in a dress that hides nothing.",
        "Keep what `tools.hasher` makes of it, never the secret itself.")
    }
  }
}

extension Proof.Record {
  /// What takes the old one's place.
  var bytes: [UInt8]? {
    switch self {
    case .replace(let bytes), .replaceOnce(let bytes): bytes
    case .keep, .remove: nil
    }
  }
}
