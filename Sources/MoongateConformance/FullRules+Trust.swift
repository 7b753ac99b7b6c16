import MoongateSDK

// The rules about concurrency, lifetimes, unknown users and faults of a full provider.

extension FullRules {
  // MARK: concurrency

  func checkConcurrency(_ person: DryRun) async {
    guard harness.needs(.concurrency), let person = await prepared(person.fresh(subject)),
      let (opened, fields) = await last(person)
    else { return }
    harness.markChecked(.concurrency)
    let answers = await withTaskGroup(of: DryRun.CallResult.Answer.self) { group in
      for _ in 0..<20 { group.addTask { await person.submit(opened, fields).answer } }
      return await group.reduce(into: []) { $0.append($1) }
    }
    let proofs = answers.compactMap { if case .proved(let proof) = $0 { proof } else { nil } }
    guard let winner = proofs.first else {
      harness.addFinding(
        .concurrency, "Of twenty concurrent right answers, none is proved.",
        "Judge each by its own state and record; share no mutable state.")
      return
    }
    guard subject.isOneTime else {
      if proofs.count < answers.count {
        harness.addFinding(
          .concurrency, "Of twenty concurrent right answers, \(proofs.count) are proved.",
          "Judge each by its own state and record: a user may sign in on two devices at once.")
      }
      return
    }
    let counted = proofs.filter { if case .replaceOnce = $0.record { false } else { true } }
    if counted.count > 1 {
      harness.addFinding(
        .concurrency, "A one-time proof was accepted \(proofs.count) times concurrently.",
        "Note its use in the record and answer `record: .replaceOnce(…)`: of all flows checked by one record, the core completes one."
      )
    }
    // Replay the answer with the record of the first proof.
    var later = person
    if let record = winner.record.bytes { later.record = record }
    let replay = await later.submit(opened, fields)
    if case .proved = replay.answer {
      harness.addFinding(
        .concurrency, "A one-time proof is accepted again later.",
        "Refuse an answer that the record marks as used, for the same or an earlier time.")
    }
  }

  // MARK: expiry

  func checkExpiry(_ person: DryRun) async {
    guard harness.needs(.expiry) else { return }
    guard let lifetime = subject.lifetime else {
      harness.markInapplicable(.expiry, because: "its right answers do not expire")
      return
    }
    let milliseconds = lifetime.components.seconds * 1000 + lifetime.components.attoseconds / 1_000_000_000_000_000
    for (age, isAlive) in [(milliseconds - 1, true), (milliseconds, false), (milliseconds + 86_400_000, false)] {
      guard let person = await prepared(person.fresh(subject)), let (opened, fields) = await last(person) else {
        return
      }
      harness.markChecked(.expiry)
      harness.setTime(to: harness.now + age)
      let result = await person.submit(opened, fields)
      if case .proved = result.answer {
        if !isAlive {
          harness.addFinding(
            .expiry, "A proof with a lifetime of \(lifetime) is accepted \(age - milliseconds) ms after its end.",
            "It is valid in [made, made + lifetime). Use `step.now`, not the system clock."
          )
        }
      } else if isAlive {
        harness.addFinding(
          .expiry,
          "A proof with a lifetime of \(lifetime) is not accepted a millisecond before its end: `submit` \(result.answer.word).",
          "It is valid in [made, made + lifetime). Use `step.now`, not the system clock.")
      }
    }
    harness.setTime(to: subject.start)
  }

  // MARK: malformed

  func checkMalformed(_ person: DryRun) async {
    guard harness.needs(.malformed), let person = await prepared(person.fresh(subject)),
      let first = await opened(person)
    else { return }
    for fields in subject.malformedSubmits {
      // Go to the round that asks for the field.
      var opened = first
      var good = await right(opened) ?? [:]
      for _ in 0..<Self.maxRounds where !fields.keys.contains(where: opened.asks) {
        guard case .opened(let next) = await person.submit(opened, good).answer else { break }
        opened = next
        good = await right(opened) ?? [:]
      }
      guard fields.keys.contains(where: opened.asks) else { continue }
      let result = await person.submit(opened, good.merging(fields) { _, new in new })
      if case .malformed = result.answer { continue }
      harness.addFinding(
        .malformed, "Unreadable input is not reported as malformed: `submit` \(result.answer.word).",
        "Throw an InputProblem in `check`, so that it is answered 422 and not counted.",
        field: fields.keys.sorted().first)
    }
    let good = await right(first) ?? [:]
    let names = first.redirect == nil ? first.fields.map(\.name) : harness.descriptor.submitFields.map(\.name)
    var inputs = names.flatMap { name in Anomalies.values.map { good.merging([name: $0]) { _, new in new } } }
    inputs.append([:])
    for fields in inputs {
      let result = await person.submit(first, fields)
      switch result.answer {
      // If any wrong answer throws, another finding already reports it.
      case .threw where [ConformanceRule.refusals, .outcomes, .askedFields].contains(where: harness.isBroken): return
      // The core does not call a provider without its required fields.
      case .threw where fields.isEmpty && first.fields.contains(where: \.isRequired): continue
      case .threw(let thrown):
        harness.addFinding(
          .malformed, "Input that cannot be read is an error: \(thrown.text.prefix(120)).",
          "Answer `malformed`, or throw an InputProblem in `check`.")
        return
      case .proved where fields != good && !good.isEmpty && fields.isEmpty:
        harness.addFinding(
          .malformed, "An empty `submit` is proved.", "Require the fields that you need, and refuse without them.")
      default: break
      }
    }
  }

  // MARK: unknown

  static let reveals = "it cannot be asked about accounts: it reads no identifier, or its policy reveals them"

  /// Whether its answers must be the same for known and unknown users.
  func conceals(_ person: DryRun) -> Bool {
    person.named != nil && harness.descriptor.policy.text.contains(/unknown_account\s*=\s*["']conceal["']/)
  }

  func checkUnknown(_ person: DryRun) async {
    guard conceals(person) else {
      harness.markInapplicable(.unknown, because: Self.reveals)
      return
    }
    guard harness.needs(.unknown), let known = await prepared(person.fresh(subject)) else { return }
    let (unknown, without) = (known.asNobody, known.asWithoutRecord)
    guard let opened = await opened(known), let wrong = await wrong(opened) else { return }
    let expected = await known.submit(opened, wrong)
    if case .proved = expected.answer {
      harness.markInapplicable(.unknown, because: "the wrong answer is proved for a known account")
      return
    }
    harness.markChecked(.unknown)
    for (who, whose) in [(unknown, "unknown"), (without, "that of an account without a record")] {
      let begun = await who.begin(.prove)
      guard case .opened(let step) = begun.answer, step.fields == opened.fields, step.shown == opened.shown else {
        harness.addFinding(
          .unknown, "For an identifier that is \(whose), `begin` answers differently.",
          "Answer the same for every user: a different answer reveals who is registered.")
        continue
      }
      let result = await who.submit(step, wrong)
      if result.answer.word != expected.answer.word {
        harness.addFinding(
          .unknown,
          "For an identifier that is \(whose), `submit` \(result.answer.word), and \(expected.answer.word) for a known one.",
          "Give the same refusal to both.")
      }
      // Compare work that can be counted and is the same in every run: hashing, requests, messages and random bytes.
      let (left, right) = (result.capabilities.use, expected.capabilities.use)
      if left.hashing != right.hashing || left.requests.count != right.requests.count
        || left.messages.count != right.messages.count
        || left.random != right.random || left.storing != right.storing
      {
        harness.addFinding(
          .unknown, "For an identifier that is \(whose), the work differs from that for a known one.",
          "Do the same work: `hasher.verify(typed, against: nil)` takes as long as with a hash, and response times reveal who is registered."
        )
      }
    }
  }

  // MARK: faults

  /// - Parameter isAble: whether the subject knows the right answer.
  func checkFaults(_ person: DryRun, isAble: Bool) async {
    guard harness.needs(.faults), let person = await prepared(person.fresh(subject)) else { return }
    if let unseen = harness.watched?.unobservableReason {
      harness.markInapplicable(.faults, because: unseen)
      return
    }
    // An external provider is checked only if something that it uses can fail.
    if harness.watched == nil { harness.markChecked(.faults) }
    let failing = RecordedCapabilities(.fails)
    let begun = await person.begin(.prove, failing)
    if failing.use.canFail {
      harness.markChecked(.faults)
      switch begun.answer {
      case .threw, .late: break
      // The provider may know the site's response from before.
      case .opened where failing.use.messages.isEmpty && failing.use.hashing.isEmpty && failing.use.storing.isEmpty:
        break
      default:
        harness.addFinding(
          .faults, "When a tool fails, `begin` \(begun.answer.word).",
          "Let the error through: the core answers 503 and charges no attempt.")
      }
    }
    guard isAble, let (opened, good) = await last(person) else { return }
    let capabilities = RecordedCapabilities(.fails)
    let result = await person.submit(opened, good, capabilities)
    guard capabilities.use.canFail else { return }
    harness.markChecked(.faults)
    switch result.answer {
    case .threw, .late: break
    // The provider did not use the failing tools.
    case .proved where capabilities.use.hashing.isEmpty && capabilities.use.storing.isEmpty && harness.watched == nil:
      break
    default:
      harness.addFinding(
        .faults, "When a tool fails, `submit` \(result.answer.word).",
        "Let the error through: a fault is neither a refusal nor a success.")
    }
  }

  /// Attack: a site that is down, which a provider takes for one that no longer has the user, signs everybody out.
  func checkRecheck(_ person: DryRun) async {
    guard harness.needs(.faults), harness.descriptor.rechecks, let rechecking = provider as? any Rechecking,
      let person = await prepared(person.fresh(subject)), let (opened, good) = await last(person),
      case .proved(let proof) = await person.submit(opened, good).answer, let state = proof.recheck,
      let identity = proof.proved.first(where: { $0.kind == .federated })
    else { return }
    for fails in [true, false] {
      let capabilities = RecordedCapabilities(fails ? .fails : .works)
      let known = RecheckedIdentity(identity: identity, state: state)
      let answer = try? await rechecking.recheck(known, with: harness.tools(capabilities))
      switch answer {
      case .ended? where fails && capabilities.use.canFail:
        harness.addFinding(
          .faults, "When a tool fails, `recheck` answers that the user is gone.",
          "Let the error through: sessions go on until `recheck_grace` has passed.")
      case .confirmed(let other)? where other != identity:
        harness.addFinding(
          .proof, "`recheck` confirms another identity than it was asked about.",
          "Compare the subject with that of `identity`, and throw if it is another one.")
      default: break
      }
    }
  }

  // MARK: cancellation and cleanup

  func checkCancellation(_ person: DryRun) async {
    guard harness.needs(.cancellation), let person = await prepared(person.fresh(subject)) else { return }
    let input = harness.input(person.beginFields)
    await harness.checkCancellation("begin") { [provider] capabilities in
      _ = try await provider.begin(
        person.context(.prove, state: [], asked: harness.descriptor.beginFields, capabilities, hashes: false), input)
    }
    guard let (opened, good) = await last(person) else { return }
    let sent = harness.input(good.filter { opened.asks(for: $0.key) })
    await harness.checkCancellation("submit") { [provider] capabilities in
      _ = try await provider.submit(
        person.context(.prove, state: opened.state, asked: opened.fields, capabilities, hashes: true), sent)
    }
  }
}

extension DryRun {
  /// The same step without an account.
  var asNobody: DryRun {
    var nobody = self
    nobody.record = nil
    nobody.hasAccount = false
    return nobody
  }

  /// The same step for an account without a record of the provider.
  var asWithoutRecord: DryRun {
    var without = self
    without.record = nil
    return without
  }
}
