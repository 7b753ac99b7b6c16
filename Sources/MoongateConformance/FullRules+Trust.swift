import MoongateSDK

// The rules of a full provider that are about rivals, time, strangers and faults.

extension FullRules {
  // MARK: at once

  func judgeConcurrency(_ person: Rehearsal) async {
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

  func judgeExpiry(_ person: Rehearsal) async {
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

  func judgeMalformed(_ person: Rehearsal) async {
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
      case .threw where stage.isBroken(.refusals) || stage.isBroken(.outcomes): return
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

  func judgeUnknown(_ person: Rehearsal) async {
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
      // Work, as far as it can be counted and is the same in every run: what is asked of hashing, of sites, of messages and of randomness.
      let (left, right) = (heard.loan.use, expected.loan.use)
      if left.hashing != right.hashing || left.requests.count != right.requests.count || left.messages.count != right.messages.count
        || left.random != right.random
      {
        stage.finds(
          .unknown, "For an identifier that is \(whose), other work is done than for one that is known.",
          "Do the same: `hasher.verify(typed, against: nil)` takes as long as with a hash, and the time tells who is registered.")
      }
    }
  }

  // MARK: faults

  func judgeFaults(_ person: Rehearsal, fields: (@Sendable (Rehearsal.Opened) async -> [String: InputValue]?)?) async {
    guard let person = await prepared(person.fresh(subject)) else { return }
    if let unseen = stage.watched?.isUnseen {
      stage.passesOver(.faults, because: unseen)
      return
    }
    // Of one that runs elsewhere it is judged where something of its could fail.
    if stage.watched == nil { stage.judges(.faults) }
    let failing = Loan(.fails)
    let begun = await person.begin(.prove, failing)
    if failing.use.isAny {
      stage.judges(.faults)
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
    stage.judges(.faults)
    switch heard.answer {
    case .threw, .late: break
    case .proved where loan.use.hashing.isEmpty && stage.watched == nil: break  // It had all that it needed.
    default:
      stage.finds(
        .faults, "Where what it needs fails, `submit` \(heard.answer.word).",
        "Let the error through: a fault is not a refusal, and never a pass.")
    }
  }

  // MARK: cancellation and cleanup

  func judgeCancellation(_ person: Rehearsal) async {
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
  func judgeRemoval(_ person: Rehearsal) async {
    guard subject.setsUp, let person = await prepared(person.fresh(subject)), let opened = await opened(person, .disable),
      let fields = await right(person)(opened)
    else { return }
    guard case .proved(let proof) = await person.submit(opened, fields).answer else { return }
    if case .remove = proof.record { return }
    stage.finds(.cleanup, "A step of the purpose `disable` leaves the record in place.", "Answer `.proved(Proof(record: .remove))`.")
  }

  // MARK: set once

  /// What is set is not set again by who does not know it.
  func judgeSetOnce(_ person: Rehearsal) async {
    guard subject.setsUp, let person = await prepared(person.fresh(subject)), person.record != nil, let opened = await opened(person, .set),
      case .proved? = await carried(person, opened)
    else { return }
    stage.finds(
      .proof, "A step of the purpose `set` is proved though there is a secret already, and nobody asked for it.",
      "Refuse with `already_set` where `account.record` is there: a session that was left open makes itself a secret of its own otherwise. "
        + "`change` asks for the old one, and in a flow NAME_reset something else was proved first.")
  }
}
