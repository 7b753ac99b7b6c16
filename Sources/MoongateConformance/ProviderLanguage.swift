/// The language that a provider is written in, as far as findings need it: names of the Swift API, or of the JSON messages of a program.
enum ProviderLanguage: Sendable {
  case swift
  case json

  /// A sentence that was written with the names of the Swift API, in the words of this language.
  func says(_ sentence: String) -> String {
    guard self == .json else { return sentence }
    return Self.names.reduce(sentence) { $0.replacing($1.swift, with: $1.json) }
  }

  /// What the names of the Swift API are called in messages; longer ones first, since a shorter one may be a part of them.
  static let names: [(swift: String, json: String)] = [
    ("`.proved(Proof(record: .remove))`", "`{\"proved\": {\"record\": {}}}`"),
    ("`record: .replaceOnce(…)`", "`\"record\": {\"replace\": …, \"once\": true}`"),
    ("`.replaceOnce(…)`", "`record.once: true` beside `record.replace`"),
    ("`record: .replace(…)`", "`\"record\": {\"replace\": …}`"),
    ("`.replace(…)`", "`record.replace` without `record.once`"),
    ("`.refused(reason, then: …)`", "`{\"refused\": …, \"then\": …}`"),
    ("`.proved`", "`proved`"), ("`.refused`", "`refused`"), ("`.ask`", "`ask`"), ("`.redirect`", "`redirect`"), ("`.malformed`", "`malformed`"),
    ("`isFailure: false`", "`\"counts\": false`"),
    ("Answer `malformed`, or throw an InputProblem in `check`", "Answer `malformed`"),
    ("Throw an InputProblem in `check`", "Answer `malformed`"), ("Throw an InputProblem", "Answer `malformed`"),
    ("An InputProblem", "A `malformed` answer"), ("an InputProblem", "a `malformed` answer"),
    ("Let the DeliveryFault through", "Answer a JSON-RPC error"), ("Let the error through", "Answer a JSON-RPC error"),
    ("The descriptor", "The answer to `hello`"), ("the descriptor's `outcomes`", "the `outcomes` of `hello`"),
    ("the descriptor", "the answer to `hello`"),
    ("Make it once, in `init`", "Answer with constants: no time, no randomness, no counter"),
    ("`step.now`", "`now` of the call"), ("`step.state`", "`state`"), ("`step.account.record`", "`account.record`"),
    ("`account.record`", "`account.record`"),
    ("what `tools.hasher` makes of it", "an Argon2id or scrypt hash of it with 16 random bytes of salt"),
    ("`hasher.verify(typed, against: nil)` takes as long as with a hash", "hash what was typed with a constant salt if there is no record"),
    ("`tools.send`", "your own client"), ("`identifier.value`", "`to.value`"), ("`code.text`", "`text`"),
    ("`identifierKinds`", "`identifier` or `federated`"),
    ("`beginFields`", "`begin`"), ("`submitFields`", "`submit`"), ("when `Task.isCancelled`", "when `cancel` comes"),
    ("`setsUp = false`", "`\"sets_up\": false`"), ("`ConformanceSubject.uncompared`", "`uncompared` of subject.json"),
  ]
}
