import MoongateSDK

/// The rules of a full provider.
struct FullRules: Sendable {
  let stage: Stage
  let provider: any FullProvider

  var subject: ConformanceSubject { stage.subject }

  func run() async {
    stage.passesOver(.delivery, because: "codes are delivered by code providers")
    let named = await IdentifierRules(stage: stage) { [provider] input throws(InputProblem) in try provider.readIdentifier(input) }.run()
    let start = Rehearsal(stage: stage, provider: provider, record: subject.record, named: named)
    guard let able = await judgeProof(start) else {
      let why = "the subject does not know the right answer"
      stage.passesOver(.proof, .beginTwice, .expiry, .concurrency, .refusals, .unknown, because: why)
      await judgeMalformed(start)
      await judgeFaults(start, fields: nil)
      await judgeCancellation(start)
      return
    }
    await judgeBeginTwice(able)
    await judgeRefusals(able)
    await judgeConcurrency(able)
    await judgeExpiry(able)
    await judgeMalformed(able)
    await judgeUnknown(able)
    await judgeFaults(able, fields: right(able))
    await judgeCancellation(able)
    await judgeRemoval(able)
    await judgeSetOnce(able)
  }

  // MARK: parts of a person

  /// Brings the person to where the answer can be given: sets the secret, where that is how it is.
  func prepared(_ start: Rehearsal) async -> Rehearsal? {
    await subject.reset()
    stage.turn(to: subject.start)
    guard subject.setsUp else { return start }
    guard case .opened(let opened) = await start.begin(.set).answer, case .proved(let proof)? = await carried(start, opened),
      let record = proof.record.bytes
    else { return nil }
    var able = start
    able.record = record
    // They come back a minute later: what is good once a while is good again.
    stage.turn(to: stage.now + 60_000)
    return able
  }

  /// Answers a step as the subject says, and whatever it asks after that, to its end.
  func carried(_ person: Rehearsal, _ first: Rehearsal.Opened) async -> Rehearsal.Heard.Answer? {
    var opened = first
    var kept: [String] = []
    for _ in 0..<Self.mostRounds {
      for case .list(let lines) in opened.shown { kept += lines }
      guard let fields = await right(person)(opened) else { return nil }
      let answer = await person.submit(opened, fields).answer
      if case .opened(let next) = answer {
        opened = next
        continue
      }
      if case .proved(let proof) = answer, let record = proof.record.bytes, SecretSearch(kept).isIn(record) {
        stage.finds(
          .secrets, "What the person was given to keep, such as recovery codes, is in the account's record as it is.",
          "Keep hashes of it, each with a salt.")
      }
      return answer
    }
    return nil
  }

  /// A step that asks for more after that is never done.
  private static let mostRounds = 6

  func step(_ opened: Rehearsal.Opened) -> ConformanceSubject.Step {
    ConformanceSubject.Step(
      purpose: opened.purpose, fields: opened.fields, shown: opened.shown, redirect: opened.redirect, now: stage.now)
  }

  func opened(_ person: Rehearsal, _ purpose: StepPurpose = .prove) async -> Rehearsal.Opened? {
    if case .opened(let opened) = await person.begin(purpose).answer { opened } else { nil }
  }

  /// Gives the right answer to a step that is opened for it.
  func right(_ person: Rehearsal) -> @Sendable (Rehearsal.Opened) async -> [String: InputValue]? {
    { opened in (try? await subject.right(step(opened))) ?? nil }
  }

  // MARK: proof

  /// - Returns: somebody who can be proved; nil where the subject knows no answer, or the provider does not take it (which is told).
  private func judgeProof(_ start: Rehearsal) async -> Rehearsal? {
    await subject.reset()
    stage.turn(to: subject.start)
    if subject.setsUp, case .opened(let opened) = await start.begin(.set).answer, (try? await subject.right(step(opened))) ?? nil == nil {
      return nil
    }
    guard let able = await prepared(start) else {
      stage.finds(
        .proof, "A step of the purpose `set` does not end in a record, though it was answered as the subject says.",
        "Answer `.proved` with `record: .replace(…)`, or say `setsUp = false` and give the subject's own answers.")
      return nil
    }
    let begun = await able.begin(.prove)
    guard case .opened(let opened) = begun.answer else {
      let declared = ConformanceSubject.Step(purpose: .prove, fields: stage.descriptor.submitFields, shown: [], redirect: nil, now: stage.now)
      if case .proved = begun.answer {
        // Whatever the subject knows.
      } else if ((try? await subject.right(declared)) ?? nil) == nil {
        return nil
      }
      stage.finds(
        .proof, "`begin` \(begun.answer.word) where it should open the step.",
        "Answer `.ask` or `.redirect`. `.proved` in `begin` is refused by the core: a step that passes without a try is counted by no limit.")
      return nil
    }
    guard let fields = await right(able)(opened) else { return nil }
    stage.judges(.proof)
    let heard = await able.submit(opened, fields)
    guard case .proved = heard.answer else {
      stage.finds(
        .proof, "The right answer is not proved: `submit` \(heard.answer.word).",
        "See that the subject's answer is right, then that `submit` takes it.")
      return nil
    }
    return able
  }

  // MARK: begin twice

  private func judgeBeginTwice(_ person: Rehearsal) async {
    guard let person = await prepared(person.fresh(subject)), let first = await opened(person), let second = await opened(person) else {
      stage.finds(.beginTwice, "The second `begin` of a step does not open it.", "Open it again: the first is given up by the core.")
      return
    }
    stage.judges(.beginTwice)
    if first.fields != second.fields || (first.redirect == nil) != (second.redirect == nil) {
      stage.finds(.beginTwice, "The second `begin` asks for something else than the first.", "Answer the same, whatever was begun before.")
    }
    // The second one is the one that counts. What is good once is good for one of them only.
    for opened in subject.isOneTime ? [second] : [second, first] {
      guard let fields = await right(person)(opened) else { return }
      let heard = await person.submit(opened, fields)
      if case .proved = heard.answer { continue }
      stage.finds(
        .beginTwice, "After a second `begin` the right answer is not proved: `submit` \(heard.answer.word).",
        "Keep what a step needs in its `state`, and nothing of it in the provider.")
    }
  }

  // MARK: refusals

  private func judgeRefusals(_ person: Rehearsal) async {
    guard let person = await prepared(person.fresh(subject)), let opened = await opened(person) else { return }
    for _ in 0..<5 {
      guard let wrong = (try? await subject.wrong(step(opened))) ?? nil else {
        stage.passesOver(.refusals, because: "the subject knows no wrong answer")
        return
      }
      stage.judges(.refusals)
      let heard = await person.submit(opened, wrong)
      switch heard.answer {
      case .refused: continue
      case .proved: stage.finds(.refusals, "A wrong answer is proved.", "Compare before you prove.")
      case .threw where stage.isBroken(.outcomes): continue
      case .threw:
        stage.finds(
          .refusals, "A wrong answer is an error.", "Answer `.refused` with a declared reason: an error gives the try back, and guesses cost nothing."
        )
      case .malformed:
        stage.finds(.refusals, "A wrong answer is malformed, which is not counted.", "Answer `.refused` for what can be read and is wrong.")
      case .opened:
        stage.finds(.refusals, "A wrong answer is asked for again, which is not counted.", "Answer `.refused`: the core keeps the step open.")
      case .late: return
      }
      return
    }
    guard let fields = await right(person)(opened) else { return }
    let after = await person.submit(opened, fields)
    if case .proved = after.answer { return }
    stage.finds(
      .refusals, "After wrong answers the right one is not proved: `submit` \(after.answer.word).",
      "Change nothing where you refuse: tries and locks are the core's to count.")
  }
}

extension Rehearsal {
  /// The same person before anything was set.
  func fresh(_ subject: ConformanceSubject) -> Rehearsal {
    var fresh = self
    if subject.setsUp { fresh.record = subject.record }
    return fresh
  }
}
