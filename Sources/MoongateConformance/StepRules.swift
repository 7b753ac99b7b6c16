import MoongateSDK

// Checks of every answer of a full provider, regardless of the rule.

extension ConformanceHarness {
  /// Checks that a round can be asked and shown by its page.
  func checkRound(_ opened: DryRun.Opened) {
    markChecked(.rounds)
    for mistake in InputField.mistakes(inRound: opened.fields) {
      addFinding(
        .rounds, "A round cannot be asked: \(mistake).",
        "Ask for each field once, with a unique name: otherwise the gateway answers 503.")
    }
    guard case .digitPad(let count, let current, let new)? = descriptor.presentation else { return }
    for field in opened.fields where ![current, new].contains(field.name) {
      addFinding(
        .rounds, "A round asks for `\(field.name.prefix(48))`, which its digit pad does not show.",
        "Ask only for `\(current)` and `\(new)`, or use a form.", field: field.name)
    }
    for field in opened.fields where field.length.map({ $0 != count }) ?? false {
      addFinding(
        .rounds,
        "A round asks for \(field.length ?? 0) digits of `\(field.name.prefix(48))`, but its digit pad takes \(count).",
        "Use the same number of digits for the field and the pad.", field: field.name)
    }
  }

  /// Checks that setting or changing a secret completes only once.
  ///
  /// Attack: two concurrent flows set different secrets, and the later one overwrites the earlier one.
  func checkOnce(_ proof: Proof, _ purpose: StepPurpose) {
    guard purpose == .set || purpose == .change, proof.record.bytes != nil else { return }
    markChecked(.once)
    guard case .replace = proof.record else { return }
    addFinding(
      .once,
      "A step of the purpose `\(purpose.rawValue)` keeps its record by `.replace(…)`: two concurrent flows would both complete, and the later one would win.",
      "Answer `record: .replaceOnce(…)`: of all flows with the same record, the core completes only one.")
  }
}
