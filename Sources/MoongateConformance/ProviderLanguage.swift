/// The language of a provider, which selects the terms in findings: those of the Swift API, of a client library, or of
/// the JSON messages.
public enum ProviderLanguage: String, Sendable, CaseIterable {
  case swift
  /// `moongate.py`.
  case python
  /// `moongate.mjs`.
  case node
  /// `moongate.go`.
  case go
  /// A program without a client library.
  case json

  /// Translates a sentence with terms of the Swift API into the terms of this language.
  func translate(_ sentence: String) -> String {
    guard let column = Self.columns[self] else { return sentence }
    return Self.names.reduce(sentence) { $0.replacing($1[0], with: $1[column]) }
  }

  private static let columns: [Self: Int] = [.json: 1, .python: 2, .node: 3, .go: 4]

  /// The terms of the Swift API in JSON messages, Python, JavaScript and Go. Longer terms come first, because a shorter
  /// one may be part of them.
  static let names: [[String]] =
    [
      [
        "`.proved(Proof(record: .remove))`", "`{\"proved\": {\"record\": {}}}`", "`proved(record=REMOVE)`",
        "`proved({ record: REMOVE })`",
        "`Proved(Proof{Record: Remove()})`",
      ],
      [
        "`record: .replaceOnce(…)`", "`\"record\": {\"replace\": …, \"once\": true}`", "`proved(record=…)`",
        "`proved({ record: … })`",
        "`Proof{Record: Replace(…)}`",
      ],
      [
        "`.replaceOnce(…)`", "`record.once: true` beside `record.replace`", "`record=…`", "`record: …`", "`Replace(…)`",
      ],
      [
        "`record: .replace(…)`", "`\"record\": {\"replace\": …}`", "`proved(renewed=…)`", "`proved({ renewed: … })`",
        "`Proof{Record: Renew(…)}`",
      ],
      ["`.replace(…)`", "`record.replace` without `record.once`", "`renewed=…`", "`renewed: …`", "`Renew(…)`"],
      [
        "`.refused(reason, then: …)`", "`{\"refused\": …, \"then\": …}`", "`refused(reason, then=ask(…))`",
        "`refused(reason, { then: ask(…) })`",
        "`Refused(reason).Then(Ask(…))`",
      ],
      ["`isFailure: false`", "`\"counts\": false`", "`counts=False`", "`counts: false`", "`Uncounted: true`"],
      [
        "what `tools.hasher` makes of it", "an Argon2id or scrypt hash of it with 16 random bytes of salt",
        "what `step.tools.hash(…)` makes of it",
        "what `step.tools.hash(…)` makes of it", "what `step.Tools.Hash(…)` makes of it",
      ],
      [
        "`hasher.verify(typed, against: nil)` takes as long as with a hash",
        "hash what was typed with a constant salt if there is no record",
        "`step.tools.verify(typed, None)` takes as long as with a hash",
        "`step.tools.verify(typed, null)` takes as long as with a hash",
        "`step.Tools.Verify(ctx, typed, nil)` takes as long as with a hash",
      ],
      ["`step.account.record`", "`account.record`", "`step.record`", "`step.account?.record`", "`step.Record()`"],
      ["`account.record`", "`account.record`", "`step.record`", "`step.account?.record`", "`step.Record()`"],
      ["`step.now`", "`now` of the call", "`step.now`", "`step.now`", "`step.Now`"],
      ["`step.state`", "`state`", "`step.state`", "`step.state`", "`step.State`"],
      ["`identifier.value`", "`to.value`", "`message.to.value`", "`message.to.value`", "`message.To.Value`"],
      ["`code.text`", "`text`", "`message.text`", "`message.text`", "`message.Text`"],
      [
        "when `Task.isCancelled`", "when `cancel` comes", "when `cancelled` is set", "when `signal` is aborted",
        "when `ctx` is done",
      ],
      ["`beginFields`", "`begin`", "`begin_fields`", "`beginFields`", "`BeginFields`"],
      ["`submitFields`", "`submit`", "`submit_fields`", "`submitFields`", "`SubmitFields`"],
    ] + verbs + declarations + faults

  private static let verbs: [[String]] = [
    ["`.proved`", "`proved`", "`proved()`", "`proved()`", "`Proved()`"],
    ["`.refused`", "`refused`", "`refused()`", "`refused()`", "`Refused()`"],
    ["`.ask`", "`ask`", "`ask()`", "`ask()`", "`Ask()`"],
    ["`.redirect`", "`redirect`", "`redirect()`", "`redirect()`", "`Redirect()`"],
    ["`.malformed`", "`malformed`", "`malformed()`", "`malformed()`", "`Malformed()`"],
  ]

  private static let declarations: [[String]] = [
    same(["`identifierKinds`", "`identifier` or `federated`"], go: "`Identifier` or `Federated`"),
    same(
      ["the descriptor's `outcomes`", "the `outcomes` of `hello`"], python: "the provider's `outcomes`",
      go: "the provider's `Outcomes`"),
    same(["The descriptor", "The answer to `hello`"], python: "What the provider declares"),
    same(["the descriptor", "the answer to `hello`"], python: "what the provider declares"),
    same(
      ["Make it once, in `init`", "Answer with constants: no time, no randomness, no counter"],
      python: "Declare constants: no time, no randomness, no counter"),
    same(["`setsUp = false`", "`\"sets_up\": false`"]),
    same(["`ConformanceSubject.uncompared`", "`uncompared` of subject.json"]),
    same(["`tools.send`", "your own client"]),
  ]

  private static let faults: [[String]] = [
    same(
      ["Answer `malformed`, or throw an InputProblem in `check`", "Answer `malformed`"],
      python: "Answer `malformed(…)`", go: "Answer `Malformed(…)`"),
    same(
      ["Throw an InputProblem in `check`", "Answer `malformed`"], python: "Answer `malformed(…)`",
      go: "Answer `Malformed(…)`"),
    same(
      ["Throw an InputProblem", "Answer `malformed`"], python: "Answer `malformed(…)`", go: "Answer `Malformed(…)`"),
    same(["An InputProblem", "A `malformed` answer"]),
    same(["an InputProblem", "a `malformed` answer"]),
    same(
      ["Let the DeliveryFault through", "Answer a JSON-RPC error"], python: "Let the error through",
      go: "Return the error"),
    same(
      ["Let the error through", "Answer a JSON-RPC error"], python: "Let the error through", go: "Return the error"),
  ]

  /// A row with nearly the same terms for all programs.
  /// - Parameters:
  ///   - first: the terms of Swift and of the JSON messages.
  ///   - python: the term of the client libraries; nil for that of the messages.
  ///   - go: the term of Go, if it differs.
  private static func same(_ first: [String], python: String? = nil, go: String? = nil) -> [String] {
    let library = python ?? first[1]
    return first + [library, library, go ?? library]
  }
}
