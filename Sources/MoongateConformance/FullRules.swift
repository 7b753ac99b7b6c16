import MoongateSDK
import Synchronization

/// The rules of a full provider.
struct FullRules: Sendable {
  let harness: ConformanceHarness
  let provider: any FullProvider

  var subject: ConformanceSubject { harness.subject }

  func run() async {
    harness.passesOver(.delivery, because: "codes are delivered by code providers")
    let named = await IdentifierRules(harness: harness) { [provider] input throws(InputProblem) in
      try provider.readIdentifier(input)
    }.run()
    let start = DryRun(harness: harness, provider: provider, record: subject.record, named: named)
    guard let able = await judgeProof(start) else {
      let isTold = [ConformanceRule.proof, .askedFields, .rounds].contains(where: harness.isBroken)
      let why = isTold ? "the right answer is not proved" : "the subject does not know the right answer"
      harness.passesOver(
        .proof, .askedFields, .beginTwice, .expiry, .concurrency, .refusals, .counted, .wholeAnswer, .once, .hashing,
        .unknown, .timing, because: why)
      await judgeUpgrades(nil)
      await judgeMalformed(start)
      await judgeFaults(start, isAble: false)
      await judgeCancellation(start)
      return
    }
    await judgeBeginTwice(able)
    await judgeRefusals(able)
    await judgeWholeAnswer(able)
    await judgeAskedFields(able)
    await judgeConcurrency(able)
    await judgeExpiry(able)
    await judgeMalformed(able)
    await judgeUnknown(able)
    await judgeTiming(able)
    await judgeFaults(able, isAble: true)
    await judgeCancellation(able)
    await judgeRemoval(able)
    await judgeSetOnce(able)
    await judgeChange(able)
    await judgeRepeats(able)
    await judgeHashing(able)
    await judgeUpgrades(able)
  }

  // MARK: parts of a person

  /// Brings the person to where the answer can be given: sets the secret, where that is how it is.
  func prepared(_ start: DryRun) async -> DryRun? {
    await subject.reset()
    harness.forget()
    harness.turn(to: subject.start)
    guard subject.setsUp else { return start }
    guard case .opened(let opened) = await start.begin(.set).answer,
      case .proved(let proof)? = await carried(start, opened),
      let record = proof.record.bytes
    else { return nil }
    var able = start
    able.record = record
    // They come back a minute later: what is good once a while is good again.
    harness.turn(to: harness.now + 60_000)
    return able
  }

  /// Answers a step as the subject says, and whatever it asks after that, to its end.
  /// - Parameter beside: whether what was answered before, and what the subject says beyond what was asked, is sent
  ///   along.
  func carried(_ person: DryRun, _ first: DryRun.Opened, beside: Bool = false) async -> DryRun.CallResult.Answer? {
    var opened = first
    var kept: [String] = []
    var sent = person.beginFields
    for round in 1...Self.mostRounds {
      for case .list(let lines) in opened.shown { kept += lines }
      guard let fields = await right(opened) else { return nil }
      if let poll = opened.poll { harness.turn(to: harness.now + Int64(poll / .milliseconds(1))) }
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
        harness.finds(
          .secrets, "What the person was given to keep, such as recovery codes, is in the account's record as it is.",
          "Keep hashes of it, each with a salt.")
      }
      return answer
    }
    if !beside {
      harness.finds(
        .rounds, "After \(Self.mostRounds) right answers the step still asks for more.",
        "Answer `.proved` when the last round was answered: keep in the round's `state` which one it was.")
    }
    return nil
  }

  /// A step that asks for more after that is never done.
  static let mostRounds = 6

  /// How many rounds the right answer has; known when it has been proved.
  var rounds: Int { harness.rounds.withLock { $0 } }

  /// The round of this index, after the ones before it were answered.
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

  /// The round whose right answer proves.
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

  /// The right answer to a round; nil where the subject does not know it.
  func right(_ opened: DryRun.Opened) async -> [String: InputValue]? { await asked(subject.right, step(opened)) }

  /// A wrong answer to a round: what the subject says, and of required fields that it does not name the right ones.
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

  /// - Returns: somebody who can be proved; nil where the subject knows no answer, or the provider does not take it
  ///   (which is told).
  private func judgeProof(_ start: DryRun) async -> DryRun? {
    await subject.reset()
    harness.turn(to: subject.start)
    if subject.setsUp, case .opened(let opened) = await start.begin(.set).answer, await right(opened) == nil {
      return nil
    }
    guard let able = await prepared(start) else {
      if !harness.isBroken(.rounds), await !reads(start, .set) {
        harness.finds(
          .proof,
          "A step of the purpose `set` does not end in a record, though it was answered as the subject says: \(await settingEnd(start)).",
          "Answer `.proved` with `record: .replaceOnce(…)`, or say `setsUp = false` and give the subject's own answers."
        )
      }
      return nil
    }
    let begun = await able.begin(.prove)
    guard case .opened(let opened) = begun.answer else {
      let declared = ConformanceSubject.Step(
        purpose: .prove, fields: harness.descriptor.submitFields, shown: [], redirect: nil, now: harness.now)
      if case .proved = begun.answer {
        // Whatever the subject knows.
      } else if await asked(subject.right, declared) == nil {
        return nil
      }
      harness.finds(
        .proof, "`begin` \(begun.answer.word) where it should open the step.",
        "Answer `.ask` or `.redirect`. `.proved` in `begin` is refused by the core: a step that passes without a try is counted by no limit."
      )
      return nil
    }
    guard let end = await carried(able, opened) else { return nil }
    harness.judges(.proof)
    harness.judges(.rounds)
    harness.judges(.askedFields)
    guard case .proved = end else {
      if await !reads(able, .prove) {
        harness.finds(
          .proof, "The right answer is not proved: `submit` \(end.explained).",
          "See that the subject's answer is right, then that `submit` takes it."
        )
      }
      return nil
    }
    await judgeBeginAlong(able)
    return able
  }

  /// How a step of the purpose `set` ends that makes no record.
  private func settingEnd(_ start: DryRun) async -> String {
    await subject.reset()
    let begun = await start.begin(.set).answer
    guard case .opened(let opened) = begun else { return "`begin` \(begun.explained)" }
    guard let end = await carried(start, opened) else { return "the subject knows no answer to a later round" }
    return "`submit` \(end.explained)"
  }

  /// Whether the right answer passes only with fields that were not asked for, which is told.
  private func reads(_ person: DryRun, _ purpose: StepPurpose) async -> Bool {
    await subject.reset()
    guard let opened = await opened(person, purpose), case .proved? = await carried(person, opened, beside: true) else {
      return false
    }
    harness.finds(
      .askedFields,
      "A field is read that was not asked for in its round: the right answer is proved only with fields of other calls beside it.",
      "Keep in `step.state` what a later round needs. A provider receives in `submit` the fields of its last `.ask`, and nothing else."
    )
    return true
  }

  /// Attack: fields of `submit` that come with `begin` are judged there, where no try is charged: a free guess, as
  /// often as somebody likes.
  private func judgeBeginAlong(_ able: DryRun) async {
    guard harness.wants(.proof), let opened = await opened(able), opened.redirect == nil else { return }
    for (what, fields) in [("right", await right(opened)), ("wrong", await wrong(opened))] {
      guard let fields, let field = fields.keys.sorted().first(where: opened.asks) else { continue }
      let begun = await able.begin(.prove, along: fields).answer
      switch begun {
      case .opened(let same) where same.fields == opened.fields: continue
      case .malformed, .late: continue
      case .proved:
        harness.finds(
          .proof, "`begin` proves when the answer comes along with it.",
          "Only `submit` may answer `.proved`, after the try was charged: answer `.ask` in `begin`, whatever fields are there.",
          field: field)
      default:
        harness.finds(
          .proof,
          "`begin` judges an answer that comes along with it: with the \(what) one it \(begun.explained), and asks without.",
          "Answer `.ask` in `begin`, whatever fields are there: nothing that is judged in `begin` is counted.",
          field: field)
      }
    }
  }

  // MARK: begin twice

  private func judgeBeginTwice(_ person: DryRun) async {
    guard harness.wants(.beginTwice) else { return }
    guard let person = await prepared(person.fresh(subject)), let first = await opened(person),
      let second = await opened(person)
    else {
      harness.finds(
        .beginTwice, "The second `begin` of a step does not open it.",
        "Open it again: the first is given up by the core.")
      return
    }
    harness.judges(.beginTwice)
    if first.fields != second.fields || (first.redirect == nil) != (second.redirect == nil) {
      harness.finds(
        .beginTwice, "The second `begin` asks for something else than the first.",
        "Answer the same, whatever was begun before.")
    }
    // The second one is the one that counts. What is good once is good for one of them only.
    for opened in subject.isOneTime ? [second] : [second, first] {
      guard let end = await carried(person, opened) else { return }
      if case .proved = end { continue }
      harness.finds(
        .beginTwice, "After a second `begin` the right answer is not proved: `submit` \(end.word).",
        "Keep what a step needs in its `state`, and nothing of it in the provider.")
    }
  }
}

extension DryRun {
  /// The same person before anything was set.
  func fresh(_ subject: ConformanceSubject) -> DryRun {
    var fresh = self
    if subject.setsUp { fresh.record = subject.record }
    return fresh
  }
}

extension DryRun.CallResult.Answer {
  /// In a word, and what it threw.
  var explained: String {
    if case .threw(let thrown) = self { "throws (\(thrown.text.prefix(160)))" } else { word }
  }
}

extension ConformanceHarness {
  /// Hides in traces what a person was shown.
  func hide(_ shown: Shown) {
    switch shown {
    case .secret(let text), .qr(let text): trace.hide(text, as: "shown")
    case .list(let lines): for line in lines { trace.hide(line, as: "shown") }
    case .text, .ceremony: break
    }
  }

  /// The fields that the descriptor declares, of these.
  func declared(_ fields: [String: InputValue]) -> [String: InputValue] {
    let names = Set((descriptor.beginFields + descriptor.submitFields).map(\.name))
    return fields.filter { names.contains($0.key) }
  }
}
