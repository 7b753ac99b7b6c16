import MoongateSDK

// What holds for every answer of a full provider, whichever rule it was given for.

extension ConformanceHarness {
  /// Whether a round can be asked, and its page can show it.
  func judgeRound(_ opened: DryRun.Opened) {
    judges(.rounds)
    for mistake in InputField.mistakes(inRound: opened.fields) {
      finds(
        .rounds, "A round cannot be asked: \(mistake).",
        "Ask for each field once, by a name of its own: the gateway answers 503 to anything else.")
    }
    guard case .digitPad(let count, let current, let new)? = descriptor.presentation else { return }
    for field in opened.fields where ![current, new].contains(field.name) {
      finds(
        .rounds, "A round asks for `\(field.name.prefix(48))`, which its pad does not show.",
        "Ask for `\(current)` and `\(new)` only, or be shown by a form.", field: field.name)
    }
    for field in opened.fields where field.length.map({ $0 != count }) ?? false {
      finds(
        .rounds,
        "A round asks for \(field.length ?? 0) digits of `\(field.name.prefix(48))`, and its pad takes \(count).",
        "Give the field and the pad the same number of digits.", field: field.name)
    }
  }

  /// Whether what sets or changes a secret completes once.
  ///
  /// Attack: two flows that were begun at once, each with a secret of its own: the later one overwrites what the
  /// earlier one made.
  func judgeOnce(_ proof: Proof, _ purpose: StepPurpose) {
    guard purpose == .set || purpose == .change, proof.record.bytes != nil else { return }
    judges(.once)
    guard case .replace = proof.record else { return }
    finds(
      .once,
      "A step of the purpose `\(purpose.rawValue)` keeps its record by `.replace(…)`: of two flows at once both complete, and the later one wins.",
      "Answer `record: .replaceOnce(…)`: of all flows that were judged by the same record, the core completes one.")
  }
}
