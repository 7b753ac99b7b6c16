import MoongateSDK
import Synchronization

/// The rules of a full provider.
struct FullRules: Sendable {
  let harness: ConformanceHarness
  let provider: any FullProvider

  var subject: ConformanceSubject { harness.subject }

  func run() async {
    harness.markInapplicable(.delivery, because: "codes are delivered by code providers")
    let named = await IdentifierRules(harness: harness) { [provider] input throws(InputProblem) in
      try provider.readIdentifier(input)
    }.run()
    let start = DryRun(harness: harness, provider: provider, record: subject.record, named: named)
    guard let able = await checkProof(start) else {
      let isTold = [ConformanceRule.proof, .askedFields, .rounds].contains(where: harness.isBroken)
      let why = isTold ? "the right answer is not proved" : "the subject does not know the right answer"
      harness.markInapplicable(
        .proof, .askedFields, .beginTwice, .expiry, .concurrency, .refusals, .counted, .wholeAnswer, .once, .hashing,
        .unknown, .timing, because: why)
      await checkUpgrades(nil)
      await checkMalformed(start)
      await checkFaults(start, isAble: false)
      await checkCancellation(start)
      return
    }
    await checkBeginTwice(able)
    await checkRefusals(able)
    await checkWholeAnswer(able)
    await checkAskedFields(able)
    await checkConcurrency(able)
    await checkExpiry(able)
    await checkMalformed(able)
    await checkUnknown(able)
    await checkTiming(able)
    await checkFaults(able, isAble: true)
    await checkRecheck(able)
    await checkCancellation(able)
    await checkRemoval(able)
    await checkSetOnce(able)
    await checkChange(able)
    await checkRepeats(able)
    await checkHashing(able)
    await checkUpgrades(able)
  }

  // MARK: preparing a user

  /// Prepares a user who can give the answer: sets the secret if the provider needs one.
  func prepared(_ start: DryRun) async -> DryRun? {
    await subject.reset()
    harness.forget()
    harness.setTime(to: subject.start)
    guard subject.setsUp else { return start }
    guard case .opened(let opened) = await start.begin(.set).answer,
      case .proved(let proof)? = await carried(start, opened),
      let record = proof.record.bytes
    else { return nil }
    var able = start
    able.record = record
    // The user returns a minute later, so that a one-time answer is valid again.
    harness.setTime(to: harness.now + 60_000)
    return able
  }

  /// Answers a step and all its following rounds with the subject's right answers.
  /// - Parameter beside: whether to also send earlier answers and the subject's other fields.
  func carried(_ person: DryRun, _ first: DryRun.Opened, beside: Bool = false) async -> DryRun.CallResult.Answer? {
    var opened = first
    var kept: [String] = []
    var sent = person.beginFields
    for round in 1...Self.maxRounds {
      for case .list(let lines) in opened.shown { kept += lines }
      guard let fields = await right(opened) else { return nil }
      if let poll = opened.poll { harness.setTime(to: harness.now + Int64(poll / .milliseconds(1))) }
      sent.merge(fields) { _, new in new }
      let answer = await person.submit(opened, fields, unasked: beside ? sent : [:]).answer
      if case .opened(let next) = answer {
        opened = next
        continue
      }
      if case .proved = answer, opened.purpose == .prove, !beside {
        harness.rounds.withLock { $0 = $0 == 0 ? round : $0 }
      }
      if case .proved(let proof) = answer, let record = proof.record.bytes, SecretSearch(kept).isIn(record) {
        harness.addFinding(
          .secrets,
          "Content for the user to keep, for example recovery codes, is stored in plain text in the account's record.",
          "Store salted hashes of it.")
      }
      return answer
    }
    if !beside {
      harness.addFinding(
        .rounds, "After \(Self.maxRounds) right answers, the step still asks for more.",
        "Answer `.proved` after the last round: keep the number of the round in `state`.")
    }
    return nil
  }

  /// The maximum number of rounds before a step counts as endless.
  static let maxRounds = 6

  /// The number of rounds of the right answer, once it has been proved.
  var rounds: Int { harness.rounds.withLock { $0 } }

  /// The round with this index, after the rounds before it were answered.
  func reached(_ person: DryRun, _ index: Int) async -> DryRun.Opened? {
    guard var opened = await opened(person) else { return nil }
    for _ in 0..<index {
      guard let fields = await right(opened), case .opened(let next) = await person.submit(opened, fields).answer else {
        return nil
      }
      opened = next
    }
    return opened
  }

  /// The round whose right answer completes the step.
  func last(_ person: DryRun) async -> (opened: DryRun.Opened, fields: [String: InputValue])? {
    guard rounds > 0, let opened = await reached(person, rounds - 1), let fields = await right(opened) else {
      return nil
    }
    return (opened, fields)
  }

  func step(_ opened: DryRun.Opened) -> ConformanceSubject.Step {
    ConformanceSubject.Step(
      purpose: opened.purpose, fields: opened.fields, shown: opened.shown, redirect: opened.redirect, poll: opened.poll,
      now: harness.now)
  }

  func opened(_ person: DryRun, _ purpose: StepPurpose = .prove) async -> DryRun.Opened? {
    if case .opened(let opened) = await person.begin(purpose).answer { opened } else { nil }
  }

  /// The right answer to a round; nil if the subject does not know it.
  func right(_ opened: DryRun.Opened) async -> [String: InputValue]? { await asked(subject.right, step(opened)) }

  /// A wrong answer to a round: the subject's, completed with right values for other required fields.
  func wrong(_ opened: DryRun.Opened) async -> [String: InputValue]? {
    guard var wrong = await asked(subject.wrong, step(opened)) else { return nil }
    guard opened.redirect != nil || wrong.keys.contains(where: opened.asks) else { return nil }
    let right = await right(opened) ?? [:]
    for field in opened.fields where field.isRequired && wrong[field.name] == nil {
      wrong[field.name] = right[field.name]
    }
    return wrong
  }

  private func asked(
    _ who: @Sendable (ConformanceSubject.Step) async throws -> [String: InputValue]?, _ step: ConformanceSubject.Step
  ) async -> [String: InputValue]? {
    for shown in step.shown { harness.hide(shown) }
    do { return try await who(step) } catch {
      harness.subjectFailed(error)
      return nil
    }
  }

  // MARK: proof

  /// - Returns: a user whose answer is proved; nil if the subject knows no answer or the provider does not accept it
  ///   (which is reported).
  private func checkProof(_ start: DryRun) async -> DryRun? {
    await subject.reset()
    harness.setTime(to: subject.start)
    if subject.setsUp, case .opened(let opened) = await start.begin(.set).answer, await right(opened) == nil {
      return nil
    }
    guard let able = await prepared(start) else {
      if !harness.isBroken(.rounds), await !reads(start, .set) {
        harness.addFinding(
          .proof,
          "A step of the purpose `set` does not end with a record, although it got the subject's answers: \(await settingEnd(start)).",
          "Answer `.proved` with `record: .replaceOnce(…)`, or set `setsUp = false` and give the subject its own answers."
        )
      }
      return nil
    }
    let begun = await able.begin(.prove)
    guard case .opened(let opened) = begun.answer else {
      let declared = ConformanceSubject.Step(
        purpose: .prove, fields: harness.descriptor.submitFields, shown: [], redirect: nil, now: harness.now)
      if case .proved = begun.answer {
        // Independent of the subject.
      } else if await asked(subject.right, declared) == nil {
        return nil
      }
      harness.addFinding(
        .proof, "`begin` \(begun.answer.word) instead of opening the step.",
        "Answer `.ask` or `.redirect`. The core refuses `.proved` in `begin`, because a step that succeeds without an attempt is not counted by any limit."
      )
      return nil
    }
    guard let end = await carried(able, opened) else { return nil }
    harness.markChecked(.proof)
    harness.markChecked(.rounds)
    harness.markChecked(.askedFields)
    guard case .proved = end else {
      if await !reads(able, .prove) {
        harness.addFinding(
          .proof, "The right answer is not proved: `submit` \(end.explained).",
          "Make sure that the subject's answer is right and that `submit` accepts it."
        )
      }
      return nil
    }
    await checkSubmitFieldsInBegin(able)
    return able
  }

  /// How a step with the purpose `set` ends if it creates no record.
  private func settingEnd(_ start: DryRun) async -> String {
    await subject.reset()
    let begun = await start.begin(.set).answer
    guard case .opened(let opened) = begun else { return "`begin` \(begun.explained)" }
    guard let end = await carried(start, opened) else { return "the subject knows no answer to a later round" }
    return "`submit` \(end.explained)"
  }

  /// Whether the right answer is proved only with fields that were not requested. Reports a finding if so.
  private func reads(_ person: DryRun, _ purpose: StepPurpose) async -> Bool {
    await subject.reset()
    guard let opened = await opened(person, purpose), case .proved? = await carried(person, opened, beside: true) else {
      return false
    }
    harness.addFinding(
      .askedFields,
      "A field is read that its round does not ask for: the right answer is proved only together with fields of other calls.",
      "Keep data for a later round in `step.state`. `submit` receives only the fields of the last `.ask`."
    )
    return true
  }

  /// Attack: fields of `submit` that are sent with `begin` are checked there, where no attempt is charged, so that an
  /// attacker can guess without limit.
  private func checkSubmitFieldsInBegin(_ able: DryRun) async {
    guard harness.needs(.proof), let opened = await opened(able), opened.redirect == nil else { return }
    for (what, fields) in [("right", await right(opened)), ("wrong", await wrong(opened))] {
      guard let fields, let field = fields.keys.sorted().first(where: opened.asks) else { continue }
      let begun = await able.begin(.prove, along: fields).answer
      switch begun {
      case .opened(let same) where same.fields == opened.fields: continue
      case .malformed, .late: continue
      case .proved:
        harness.addFinding(
          .proof, "`begin` proves if it receives the answer.",
          "Only `submit` may answer `.proved`, after the attempt was charged: answer `.ask` in `begin`, regardless of its fields.",
          field: field)
      default:
        harness.addFinding(
          .proof,
          "`begin` judges an answer that it receives: with the \(what) one it \(begun.explained), and without it asks.",
          "Answer `.ask` in `begin`, regardless of its fields: nothing that `begin` judges is counted.",
          field: field)
      }
    }
  }

  // MARK: begin twice

  private func checkBeginTwice(_ person: DryRun) async {
    guard harness.needs(.beginTwice) else { return }
    guard let person = await prepared(person.fresh(subject)), let first = await opened(person),
      let second = await opened(person)
    else {
      harness.addFinding(
        .beginTwice, "The second `begin` of a step does not open it.",
        "Open it again: the core abandons the first.")
      return
    }
    harness.markChecked(.beginTwice)
    if first.fields != second.fields || (first.redirect == nil) != (second.redirect == nil) {
      harness.addFinding(
        .beginTwice, "The second `begin` asks for other fields than the first.",
        "Answer the same, independent of earlier calls.")
    }
    // The second step counts. A one-time answer is valid for only one of them.
    for opened in subject.isOneTime ? [second] : [second, first] {
      guard let end = await carried(person, opened) else { return }
      if case .proved = end { continue }
      harness.addFinding(
        .beginTwice, "After a second `begin`, the right answer is not proved: `submit` \(end.word).",
        "Keep all data of a step in its `state`, not in the provider.")
    }
  }
}

extension DryRun {
  /// The same user before a secret was set.
  func fresh(_ subject: ConformanceSubject) -> DryRun {
    var fresh = self
    if subject.setsUp { fresh.record = subject.record }
    return fresh
  }
}

extension DryRun.CallResult.Answer {
  /// The answer in a few words, with the thrown error.
  var explained: String {
    if case .threw(let thrown) = self { "throws (\(thrown.text.prefix(160)))" } else { word }
  }
}

extension ConformanceHarness {
  /// Hides shown content in traces.
  func hide(_ shown: Shown) {
    switch shown {
    case .secret(let text), .qr(let text): trace.hide(text, as: "shown")
    case .list(let lines): for line in lines { trace.hide(line, as: "shown") }
    case .text, .ceremony: break
    }
  }

  /// The fields that the descriptor declares.
  func declared(_ fields: [String: InputValue]) -> [String: InputValue] {
    let names = Set((descriptor.beginFields + descriptor.submitFields).map(\.name))
    return fields.filter { names.contains($0.key) }
  }
}
