import MoongateSDK

// The rule about rounds that ask for the same again.

extension FullRules {
  /// A round that asks for a field which an earlier round of the step had compares the two answers.
  ///
  /// Attack: a person who chooses a secret mistypes it in one of two rounds. If nothing is compared, they have a secret
  /// that they do not know. A round that compares nothing in a change of a secret takes whatever is typed.
  func judgeRepeats(_ person: DryRun) async {
    guard harness.wants(.rounds), subject.setsUp else { return }
    await judgeRepeats(of: .set) { person.fresh(subject) }
    await judgeRepeats(of: .change) { await prepared(person.fresh(subject)) }
  }

  private func judgeRepeats(of purpose: StepPurpose, _ person: () async -> DryRun?) async {
    guard let rounds = await roundsAnswered(purpose, person) else { return }
    var taken: Set<String> = []
    for (index, fields) in rounds.enumerated() {
      for name in fields where taken.contains(name) && !subject.uncompared.contains(name) {
        await judgeRepeat(of: name, purpose, index, left: rounds.count - index - 1, person)
      }
      taken.formUnion(fields)
    }
  }

  /// Gives another answer than before to the field that is asked for again.
  private func judgeRepeat(
    of name: String, _ purpose: StepPurpose, _ index: Int, left: Int, _ person: () async -> DryRun?
  ) async {
    guard let (person, opened, right) = await arrived(at: index, purpose, person), case .text(let text)? = right[name],
      let other = AlteredAnswer.whole(text)
    else { return }
    harness.judges(.rounds)
    let wronged = await wronged(person, opened, right.merging([name: .text(other)]) { _, new in new })
    guard case .proved = wronged.end, wronged.following <= left else { return }
    harness.finds(
      .rounds,
      "A round asks for `\(name)` once more and does not compare it: a step of the purpose `\(purpose.rawValue)` is proved with two different answers.",
      "Keep a hash of the first answer in `step.state`, and refuse what does not match it. Fields that may differ are named in `ConformanceSubject.uncompared`.",
      field: name)
  }

  /// The names of the fields that each round asks for, where right answers prove the step; nil where it has one round
  /// only.
  private func roundsAnswered(_ purpose: StepPurpose, _ person: () async -> DryRun?) async -> [[String]]? {
    await restart()
    guard let person = await person(), var opened = await opened(person, purpose) else { return nil }
    var rounds: [[String]] = []
    for _ in 0..<Self.mostRounds {
      guard let right = await right(opened) else { return nil }
      rounds.append(opened.fields.filter { [.digits, .text, .password].contains($0.kind) }.map(\.name))
      switch await person.submit(opened, right).answer {
      case .opened(let next): opened = next
      case .proved: return rounds.count > 1 ? rounds : nil
      default: return nil
      }
    }
    return nil
  }

  /// The round of this index, after right answers to the ones before it, with its own right answer.
  private func arrived(at index: Int, _ purpose: StepPurpose, _ person: () async -> DryRun?) async -> (
    DryRun, DryRun.Opened, [String: InputValue]
  )? {
    await restart()
    guard let person = await person(), var opened = await opened(person, purpose) else { return nil }
    for _ in 0..<index {
      guard let right = await right(opened), case .opened(let next) = await person.submit(opened, right).answer else {
        return nil
      }
      opened = next
    }
    return await right(opened).map { (person, opened, $0) }
  }

  private func restart() async {
    await subject.reset()
    harness.forget()
    harness.turn(to: subject.start)
  }
}
