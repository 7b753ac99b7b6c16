import MoongateSDK

// The rules of a full provider that are about answers at once, lifetimes, unknown people and faults.

extension FullRules {
  // MARK: at once

  func judgeConcurrency(_ person: DryRun) async {
    guard harness.wants(.concurrency), let person = await prepared(person.fresh(subject)),
      let (opened, fields) = await last(person)
    else { return }
    harness.judges(.concurrency)
    let answers = await withTaskGroup(of: DryRun.CallResult.Answer.self) { group in
      for _ in 0..<20 { group.addTask { await person.submit(opened, fields).answer } }
      return await group.reduce(into: []) { $0.append($1) }
    }
    let proofs = answers.compactMap { if case .proved(let proof) = $0 { proof } else { nil } }
    guard let winner = proofs.first else {
      harness.finds(
        .concurrency, "Of twenty right answers at once none is proved.",
        "Judge each by its own state and record; share nothing that a rival can change.")
      return
    }
    guard subject.isOneTime else {
      if proofs.count < answers.count {
        harness.finds(
          .concurrency, "Of twenty right answers at once \(proofs.count) are proved.",
          "Judge each by its own state and record: people sign in on two devices at once.")
      }
      return
    }
    let counted = proofs.filter { if case .replaceOnce = $0.record { false } else { true } }
    if counted.count > 1 {
      harness.finds(
        .concurrency, "A proof that is good once was proved \(proofs.count) times at once.",
        "Note its use in the record and answer `record: .replaceOnce(…)`: of all flows judged by one record, the core completes one."
      )
    }
    // Replayed, when the first one's record is in place.
    var later = person
    if let record = winner.record.bytes { later.record = record }
    let replay = await later.submit(opened, fields)
    if case .proved = replay.answer {
      harness.finds(
        .concurrency, "A proof that is good once is proved again afterwards.",
        "Refuse what the record says was used, at the same or an earlier time.")
    }
  }

  // MARK: expiry

  func judgeExpiry(_ person: DryRun) async {
    guard harness.wants(.expiry) else { return }
    guard let lifetime = subject.lifetime else {
      harness.passesOver(.expiry, because: "its right answers have no end of their own")
      return
    }
    let milliseconds = lifetime.components.seconds * 1000 + lifetime.components.attoseconds / 1_000_000_000_000_000
    for (age, isAlive) in [(milliseconds - 1, true), (milliseconds, false), (milliseconds + 86_400_000, false)] {
      guard let person = await prepared(person.fresh(subject)), let (opened, fields) = await last(person) else {
        return
      }
      harness.judges(.expiry)
      harness.turn(to: harness.now + age)
      let heard = await person.submit(opened, fields)
      if case .proved = heard.answer {
        if !isAlive {
          harness.finds(
            .expiry, "A proof of \(lifetime) is taken \(age - milliseconds) ms after its end.",
            "It lives in [made, made + lifetime): at its end it is over. Go by `step.now`, never by the system's clock."
          )
        }
      } else if isAlive {
        harness.finds(
          .expiry, "A proof of \(lifetime) is not taken a millisecond before its end: `submit` \(heard.answer.word).",
          "It lives in [made, made + lifetime). Go by `step.now`, never by the system's clock.")
      }
    }
    harness.turn(to: subject.start)
  }

  // MARK: malformed

  func judgeMalformed(_ person: DryRun) async {
    guard harness.wants(.malformed), let person = await prepared(person.fresh(subject)),
      let first = await opened(person)
    else { return }
    for fields in subject.malformedSubmits {
      // In the round that asks for it.
      var opened = first
      var good = await right(opened) ?? [:]
      for _ in 0..<Self.mostRounds where !fields.keys.contains(where: opened.asks) {
        guard case .opened(let next) = await person.submit(opened, good).answer else { break }
        opened = next
        good = await right(opened) ?? [:]
      }
      guard fields.keys.contains(where: opened.asks) else { continue }
      let heard = await person.submit(opened, good.merging(fields) { _, new in new })
      if case .malformed = heard.answer { continue }
      harness.finds(
        .malformed, "What cannot be read is not malformed: `submit` \(heard.answer.word).",
        "Throw an InputProblem in `check`, so that it is answered 422 and not counted.",
        field: fields.keys.sorted().first)
    }
    let good = await right(first) ?? [:]
    let names = first.redirect == nil ? first.fields.map(\.name) : harness.descriptor.submitFields.map(\.name)
    var inputs = names.flatMap { name in Anomalies.values.map { good.merging([name: $0]) { _, new in new } } }
    inputs.append([:])
    for fields in inputs {
      let heard = await person.submit(first, fields)
      switch heard.answer {
      // Where any wrong answer throws, that has been told.
      case .threw where [ConformanceRule.refusals, .outcomes, .askedFields].contains(where: harness.isBroken): return
      // A field that is required is there, or nobody is called.
      case .threw where fields.isEmpty && first.fields.contains(where: \.isRequired): continue
      case .threw(let thrown):
        harness.finds(
          .malformed, "Input that cannot be read is an error: \(thrown.text.prefix(120)).",
          "Answer `malformed`, or throw an InputProblem in `check`.")
        return
      case .proved where fields != good && !good.isEmpty && fields.isEmpty:
        harness.finds(.malformed, "An empty `submit` is proved.", "Ask for what you need, and refuse without it.")
      default: break
      }
    }
  }

  // MARK: unknown

  static let reveals = "nobody can ask it who is known: it reads no identifier, or its policy reveals"

  /// Whether its answers have to be the same for known and for unknown people.
  func conceals(_ person: DryRun) -> Bool {
    person.named != nil && harness.descriptor.policy.text.contains(/unknown_account\s*=\s*["']conceal["']/)
  }

  func judgeUnknown(_ person: DryRun) async {
    guard conceals(person) else {
      harness.passesOver(.unknown, because: Self.reveals)
      return
    }
    guard harness.wants(.unknown), let known = await prepared(person.fresh(subject)) else { return }
    let (unknown, without) = (known.asNobody, known.asWithoutRecord)
    guard let opened = await opened(known), let wrong = await wrong(opened) else { return }
    let expected = await known.submit(opened, wrong)
    if case .proved = expected.answer {
      harness.passesOver(.unknown, because: "the wrong answer is proved for a known account")
      return
    }
    harness.judges(.unknown)
    for (who, whose) in [(unknown, "unknown"), (without, "that of an account without a record")] {
      let begun = await who.begin(.prove)
      guard case .opened(let step) = begun.answer, step.fields == opened.fields, step.shown == opened.shown else {
        harness.finds(
          .unknown, "For an identifier that is \(whose), `begin` answers something else.",
          "Ask every person the same: a different answer tells an attacker who is registered.")
        continue
      }
      let heard = await who.submit(step, wrong)
      if heard.answer.word != expected.answer.word {
        harness.finds(
          .unknown,
          "For an identifier that is \(whose), `submit` \(heard.answer.word), and \(expected.answer.word) for a known one.",
          "Give the same refusal to both.")
      }
      // Work, as far as it can be counted and is the same in every run: what is asked of hashing, of sites, of messages
      // and of randomness.
      let (left, right) = (heard.capabilities.use, expected.capabilities.use)
      if left.hashing != right.hashing || left.requests.count != right.requests.count
        || left.messages.count != right.messages.count
        || left.random != right.random || left.storing != right.storing
      {
        harness.finds(
          .unknown, "For an identifier that is \(whose), other work is done than for a known one.",
          "Do the same: `hasher.verify(typed, against: nil)` takes as long as with a hash, and the time tells who is registered."
        )
      }
    }
  }

  // MARK: faults

  /// - Parameter isAble: whether the person can give the right answer.
  func judgeFaults(_ person: DryRun, isAble: Bool) async {
    guard harness.wants(.faults), let person = await prepared(person.fresh(subject)) else { return }
    if let unseen = harness.watched?.isUnseen {
      harness.passesOver(.faults, because: unseen)
      return
    }
    // Of one that runs elsewhere it is judged where something of its could fail.
    if harness.watched == nil { harness.judges(.faults) }
    let failing = RecordedCapabilities(.fails)
    let begun = await person.begin(.prove, failing)
    if failing.use.canFail {
      harness.judges(.faults)
      switch begun.answer {
      case .threw, .late: break
      // It may know from before what the site says.
      case .opened where failing.use.messages.isEmpty && failing.use.hashing.isEmpty && failing.use.storing.isEmpty:
        break
      default:
        harness.finds(
          .faults, "Where what it needs fails, `begin` \(begun.answer.word).",
          "Let the error through: the core answers 503 and charges nobody.")
      }
    }
    guard isAble, let (opened, good) = await last(person) else { return }
    let capabilities = RecordedCapabilities(.fails)
    let heard = await person.submit(opened, good, capabilities)
    guard capabilities.use.canFail else { return }
    harness.judges(.faults)
    switch heard.answer {
    case .threw, .late: break
    // It had all that it needed.
    case .proved where capabilities.use.hashing.isEmpty && capabilities.use.storing.isEmpty && harness.watched == nil:
      break
    default:
      harness.finds(
        .faults, "Where what it needs fails, `submit` \(heard.answer.word).",
        "Let the error through: a fault is not a refusal, and never a pass.")
    }
  }

  // MARK: cancellation and cleanup

  func judgeCancellation(_ person: DryRun) async {
    guard harness.wants(.cancellation), let person = await prepared(person.fresh(subject)) else { return }
    let input = harness.input(person.beginFields)
    await harness.judgeCancellation("begin") { [provider] capabilities in
      _ = try await provider.begin(
        person.context(.prove, state: [], asked: harness.descriptor.beginFields, capabilities, hashes: false), input)
    }
    guard let (opened, good) = await last(person) else { return }
    let sent = harness.input(good.filter { opened.asks(for: $0.key) })
    await harness.judgeCancellation("submit") { [provider] capabilities in
      _ = try await provider.submit(
        person.context(.prove, state: opened.state, asked: opened.fields, capabilities, hashes: true), sent)
    }
  }
}

extension DryRun {
  /// The same step, about nobody.
  var asNobody: DryRun {
    var nobody = self
    nobody.record = nil
    nobody.hasAccount = false
    return nobody
  }

  /// The same step, about an account for which the provider keeps nothing.
  var asWithoutRecord: DryRun {
    var without = self
    without.record = nil
    return without
  }
}
