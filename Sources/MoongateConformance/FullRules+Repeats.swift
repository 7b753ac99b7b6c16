import MoongateSDK

// The rule about rounds that ask for a field again.

extension FullRules {
  /// A round that asks for a field of an earlier round must compare the two answers.
  ///
  /// Attack: a user mistypes a new secret in one of two rounds. If they are not compared, the user does not know the
  /// new secret. In a change, a round without a comparison accepts any input.
  func checkRepeats(_ person: DryRun) async {
    guard harness.needs(.rounds), subject.setsUp else { return }
    await checkRepeats(of: .set) { person.fresh(subject) }
    await checkRepeats(of: .change) { await prepared(person.fresh(subject)) }
  }

  private func checkRepeats(of purpose: StepPurpose, _ person: () async -> DryRun?) async {
    guard let rounds = await roundsAnswered(purpose, person) else { return }
    var taken: Set<String> = []
    for (index, fields) in rounds.enumerated() {
      for name in fields where taken.contains(name) && !subject.uncompared.contains(name) {
        await checkRepeat(of: name, purpose, index, left: rounds.count - index - 1, person)
      }
      taken.formUnion(fields)
    }
  }

  /// Gives a different answer to the repeated field.
  private func checkRepeat(
    of name: String, _ purpose: StepPurpose, _ index: Int, left: Int, _ person: () async -> DryRun?
  ) async {
    guard let (person, opened, right) = await arrived(at: index, purpose, person), case .text(let text)? = right[name],
      let other = AlteredAnswer.whole(text)
    else { return }
    harness.markChecked(.rounds)
    let reaction = await giveWrongAnswer(person, opened, right.merging([name: .text(other)]) { _, new in new })
    guard case .proved = reaction.end, reaction.following <= left else { return }
    harness.addFinding(
      .rounds,
      "A round asks for `\(name)` again but does not compare it: a step of the purpose `\(purpose.rawValue)` is proved with two different answers.",
      "Keep a hash of the first answer in `step.state`, and refuse an answer that does not match it. List fields that may differ in `ConformanceSubject.uncompared`.",
      field: name)
  }

  /// The field names of each round, if right answers prove the step; nil if it has only one round.
  private func roundsAnswered(_ purpose: StepPurpose, _ person: () async -> DryRun?) async -> [[String]]? {
    await restart()
    guard let person = await person(), var opened = await opened(person, purpose) else { return nil }
    var rounds: [[String]] = []
    for _ in 0..<Self.maxRounds {
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

  /// Answers the rounds before the index and returns the round with its right answer.
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
    harness.setTime(to: subject.start)
  }
}
