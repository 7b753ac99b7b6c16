import MoongateSDK

/// The rules of a full provider.
struct FullRules: Sendable {
  let stage: Stage
  let provider: any FullProvider

  private var subject: ConformanceSubject { stage.subject }

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
  }

  // MARK: parts of a person

  /// Brings the person to where the answer can be given: sets the secret, where that is how it is.
  private func prepared(_ start: Rehearsal) async -> Rehearsal? {
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
  private func carried(_ person: Rehearsal, _ first: Rehearsal.Opened) async -> Rehearsal.Heard.Answer? {
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

  private func step(_ opened: Rehearsal.Opened) -> ConformanceSubject.Step {
    ConformanceSubject.Step(
      purpose: opened.purpose, fields: opened.fields, shown: opened.shown, redirect: opened.redirect, now: stage.now)
  }

  private func opened(_ person: Rehearsal, _ purpose: StepPurpose = .prove) async -> Rehearsal.Opened? {
    if case .opened(let opened) = await person.begin(purpose).answer { opened } else { nil }
  }

  /// Gives the right answer to a step that is opened for it.
  private func right(_ person: Rehearsal) -> @Sendable (Rehearsal.Opened) async -> [String: InputValue]? {
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

  // MARK: at once

  private func judgeConcurrency(_ person: Rehearsal) async {
    guard let person = await prepared(person.fresh(subject)), let opened = await opened(person), let fields = await right(person)(opened) else {
      return
    }
    stage.judges(.concurrency)
    let answers = await withTaskGroup(of: Rehearsal.Heard.Answer.self) { group in
      for _ in 0..<20 { group.addTask { await person.submit(opened, fields).answer } }
      return await group.reduce(into: []) { $0.append($1) }
    }
    let proofs = answers.compactMap { if case .proved(let proof) = $0 { proof } else { nil } }
    guard let winner = proofs.first else {
      stage.finds(
        .concurrency, "Of twenty right answers at once none is proved.",
        "Judge each by its own state and record; share nothing that a rival can change.")
      return
    }
    guard subject.isOneTime else {
      if proofs.count < answers.count {
        stage.finds(
          .concurrency, "Of twenty right answers at once \(proofs.count) are proved.",
          "Judge each by its own state and record: people sign in on two devices at once.")
      }
      return
    }
    let counted = proofs.filter { if case .replaceOnce = $0.record { false } else { true } }
    if counted.count > 1 {
      stage.finds(
        .concurrency, "A proof that is good once was proved \(proofs.count) times at once.",
        "Note its use in the record and answer `record: .replaceOnce(…)`: of all flows judged by one record, the core completes one.")
    }
    // Replayed, when the first one's record is in place.
    var later = person
    if let record = winner.record.bytes { later.record = record }
    let replay = await later.submit(opened, fields)
    if case .proved = replay.answer {
      stage.finds(
        .concurrency, "A proof that is good once is proved again afterwards.",
        "Refuse what the record says was used, at the same or an earlier time.")
    }
  }

  // MARK: expiry

  private func judgeExpiry(_ person: Rehearsal) async {
    guard let lifetime = subject.lifetime else {
      stage.passesOver(.expiry, because: "its right answers have no end of their own")
      return
    }
    let milliseconds = lifetime.components.seconds * 1000 + lifetime.components.attoseconds / 1_000_000_000_000_000
    for (age, isAlive) in [(milliseconds - 1, true), (milliseconds, false), (milliseconds + 86_400_000, false)] {
      guard let person = await prepared(person.fresh(subject)), let opened = await opened(person), let fields = await right(person)(opened) else {
        return
      }
      stage.judges(.expiry)
      stage.turn(to: stage.now + age)
      let heard = await person.submit(opened, fields)
      if case .proved = heard.answer {
        if !isAlive {
          stage.finds(
            .expiry, "A proof of \(lifetime) is taken \(age - milliseconds) ms after its end.",
            "It lives in [made, made + lifetime): at its end it is over. Go by `step.now`, never by the system's clock.")
        }
      } else if isAlive {
        stage.finds(
          .expiry, "A proof of \(lifetime) is not taken a millisecond before its end: `submit` \(heard.answer.word).",
          "It lives in [made, made + lifetime). Go by `step.now`, never by the system's clock.")
      }
    }
    stage.turn(to: subject.start)
  }

  // MARK: malformed

  private func judgeMalformed(_ person: Rehearsal) async {
    guard let person = await prepared(person.fresh(subject)), let opened = await opened(person) else { return }
    let good = await right(person)(opened) ?? [:]
    for fields in subject.malformedSubmits {
      let heard = await person.submit(opened, good.merging(fields) { _, new in new })
      if case .malformed = heard.answer { continue }
      stage.finds(
        .malformed, "What cannot be read is not malformed: `submit` \(heard.answer.word).",
        "Throw an InputProblem in `check`, so that it is answered 422 and not counted.")
    }
    var inputs = stage.descriptor.submitFields.flatMap { field in Oddities.values.map { good.merging([field.name: $0]) { _, new in new } } }
    inputs.append([:])
    for fields in inputs {
      let heard = await person.submit(opened, fields)
      switch heard.answer {
      // Where any wrong answer throws, that has been told.
      case .threw where stage.isBroken(.refusals): return
      case .threw(let thrown):
        stage.finds(
          .malformed, "Input that cannot be read is an error: \(thrown.text.prefix(120)).",
          "Answer `.malformed`, or throw an InputProblem in `check`.")
        return
      case .proved where fields != good && !good.isEmpty && fields.isEmpty:
        stage.finds(.malformed, "An empty `submit` is proved.", "Ask for what you need, and refuse without it.")
      default: break
      }
    }
  }

  // MARK: unknown

  private func judgeUnknown(_ person: Rehearsal) async {
    guard person.named != nil, stage.descriptor.policy.text.contains(/unknown_account\s*=\s*["']conceal["']/) else {
      stage.passesOver(.unknown, because: "nobody can ask it who is known: it reads no identifier, or its policy reveals")
      return
    }
    guard let known = await prepared(person.fresh(subject)) else { return }
    var unknown = known
    unknown.record = nil
    unknown.hasAccount = false
    var without = known
    without.record = nil
    guard let opened = await opened(known), let wrong = (try? await subject.wrong(step(opened))) ?? nil else { return }
    stage.judges(.unknown)
    let expected = await known.submit(opened, wrong)
    for (who, whose) in [(unknown, "nobody's"), (without, "of an account without a record")] {
      let begun = await who.begin(.prove)
      guard case .opened(let step) = begun.answer, step.fields == opened.fields, step.shown == opened.shown else {
        stage.finds(
          .unknown, "For an identifier that is \(whose), `begin` answers something else.",
          "Ask the same of everybody: the answer tells a stranger who is registered.")
        continue
      }
      let heard = await who.submit(step, wrong)
      if heard.answer.word != expected.answer.word {
        stage.finds(
          .unknown, "For an identifier that is \(whose), `submit` \(heard.answer.word), and \(expected.answer.word) for one that is known.",
          "Give the same refusal to both.")
      }
      let (left, right) = (heard.loan.use, expected.loan.use)
      if left.hashing != right.hashing || left.requests.count != right.requests.count || left.messages.count != right.messages.count {
        stage.finds(
          .unknown, "For an identifier that is \(whose), other work is done than for one that is known.",
          "Do the same: `hasher.verify(typed, against: nil)` takes as long as with a hash, and the time tells who is registered.")
      }
    }
  }

  // MARK: faults

  private func judgeFaults(_ person: Rehearsal, fields: (@Sendable (Rehearsal.Opened) async -> [String: InputValue]?)?) async {
    guard let person = await prepared(person.fresh(subject)) else { return }
    stage.judges(.faults)
    let failing = Loan(.fails)
    let begun = await person.begin(.prove, failing)
    if failing.use.isAny {
      switch begun.answer {
      case .threw, .late: break
      case .opened where failing.use.messages.isEmpty && failing.use.hashing.isEmpty: break  // It may know from before what the site says.
      default:
        stage.finds(
          .faults, "Where what it needs fails, `begin` \(begun.answer.word).", "Let the error through: the core answers 503 and charges nobody.")
      }
    }
    guard let fields, let opened = await opened(person), let good = await fields(opened) else { return }
    let loan = Loan(.fails)
    let heard = await person.submit(opened, good, loan)
    guard loan.use.isAny else { return }
    switch heard.answer {
    case .threw, .late: break
    case .proved where loan.use.hashing.isEmpty: break  // It had all that it needed.
    default:
      stage.finds(
        .faults, "Where what it needs fails, `submit` \(heard.answer.word).",
        "Let the error through: a fault is not a refusal, and never a pass.")
    }
  }

  // MARK: cancellation and cleanup

  private func judgeCancellation(_ person: Rehearsal) async {
    guard let person = await prepared(person.fresh(subject)) else { return }
    let input = stage.input(person.beginFields)
    await stage.judgeCancellation("begin") { [provider] loan in
      _ = try await provider.begin(person.context(.prove, state: [], loan, hashes: false), input)
    }
    guard let opened = await opened(person), let good = await right(person)(opened) else { return }
    let sent = stage.input(person.beginFields.merging(good) { _, new in new })
    await stage.judgeCancellation("submit") { [provider] loan in
      _ = try await provider.submit(person.context(.prove, state: opened.state, loan, hashes: true), sent)
    }
  }

  /// What is disabled is removed.
  private func judgeRemoval(_ person: Rehearsal) async {
    guard subject.setsUp, let person = await prepared(person.fresh(subject)), let opened = await opened(person, .disable),
      let fields = await right(person)(opened)
    else { return }
    guard case .proved(let proof) = await person.submit(opened, fields).answer else { return }
    if case .remove = proof.record { return }
    stage.finds(.cleanup, "A step of the purpose `disable` leaves the record in place.", "Answer `.proved(Proof(record: .remove))`.")
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
