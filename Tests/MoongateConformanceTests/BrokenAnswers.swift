@testable import MoongateConformance
import MoongateSDK

// Providers with broken answers, rounds, records and descriptors.

extension BrokenProvidersTests {
  // MARK: answers

  /// Attack: each of these lets an attacker guess more often, or with less knowledge, than the policy allows.
  static let answers: [Broken] = [
    Broken(
      what: "a wrong answer that is not counted", rule: .counted,
      provider: ToyWord(
        descriptor: ToyWord.described(outcomes: [Outcome("wrong_word", "This is not your word.", isFailure: false)]))),
    Broken(
      what: "a near answer that is not counted", rule: .counted,
      provider: ToyWord(
        descriptor: ToyWord.described(outcomes: [
          Outcome("wrong_word", "No."), Outcome("nearly", "Nearly.", isFailure: false),
        ]),
        submits: { step, input in
          let answer = try await ToyWord.check(step, input)
          let isNear = try ToyWord.typed(input).starts(with: Array("ninety-nine quiet pig".utf8))
          if case .refused("wrong_word") = answer, step.account?.record != nil, isNear { return .refused("nearly") }
          return answer
        })),
    Broken(
      what: "one word of three", rule: .wholeAnswer,
      provider: ToyWord(submits: cut { $0.split(separator: " ").last.map(String.init) ?? $0 })),
    Broken(
      what: "the first twenty characters", rule: .wholeAnswer,
      provider: ToyWord(submits: cut { String($0.prefix(20)) }), subject: different),
    // The subject's wrong answer begins like the right one.
    word("the first words, and the wrong answer has them", .wholeAnswer, cut { String($0.prefix(12)) }),
    Broken(
      what: "everything but the last character", rule: .wholeAnswer,
      provider: ToyWord(submits: cut { String($0.dropLast()) }), subject: different),
    Broken(
      what: "reads what came with begin", rule: .askedFields,
      provider: ToyWord(submits: { step, input in
        _ = try input.text("email")
        return try await ToyWord.check(step, input)
      })),
    Broken(
      what: "reads a field that it declares and does not ask for", rule: .askedFields,
      provider: ToyWord(
        descriptor: ToyWord.described(submit: [
          ToyWord.word, InputField(name: "master", kind: .text, isRequired: false),
        ]),
        submits: { step, input in
          try input.optionalText("master") != nil && step.purpose == .prove
            ? .proved(Proof()) : try await ToyWord.check(step, input)
        })),
    Broken(
      what: "reads a field of the round before", rule: .askedFields, provider: ToyRounds(readsBoth: true),
      subject: ToyRounds.subject),
    opening("proves in begin when all fields come along", .proof) { step, input in
      step.purpose == .prove && input.fields["word"] != nil ? .proved(Proof()) : .ask([ToyWord.word], state: [])
    },
    opening("judges in begin", .proof) { step, input in
      if case .text(let typed)? = input.fields["word"], typed.hasSuffix("penguins"), step.purpose == .prove {
        return .refused("wrong_word")
      }
      return .ask([ToyWord.word], state: [])
    },
    word("works longer for who has a word", .timing) { step, input in
      let end = ContinuousClock.now + .milliseconds(12)
      if step.account?.record != nil, step.purpose == .prove { while ContinuousClock.now < end {} }
      return try await ToyWord.check(step, input)
    },
  ]

  /// Compares only a part of the input.
  private static func cut(_ part: @escaping @Sendable (String) -> String) -> ToyWord.Submit {
    { step, input in
      var fields = input.fields
      fields["word"] = .text(part(try input.text("word")))
      return try await ToyWord.check(step, ProviderInput(fields: fields, defaultRegion: input.defaultRegion))
    }
  }

  /// A wrong answer that has nothing in common with the right one.
  private static let different: ConformanceSubject = {
    var subject = ConformanceSubject(of: ToyWord.described())
    subject.wrong = { _ in ["word": .text("forty loud geese and a gull")] }
    return subject
  }()

  // MARK: rounds

  private static func toy(_ what: String, _ provider: ToyRounds) -> Broken {
    Broken(what: what, rule: .rounds, provider: provider, subject: ToyRounds.subject)
  }

  static let rounds: [Broken] = [
    toy("asks for a field twice", ToyRounds(asks: [ToyRounds.first, ToyRounds.first])),
    toy(
      "asks for a field without a proper name",
      ToyRounds(asks: [ToyRounds.first, InputField(name: "Your PIN", kind: .digits, isRequired: false)])),
    toy("asks without end", ToyRounds(isEndless: true)),
    // Attack: a wrong first answer followed by the right second one succeeds.
    toy("goes past a wrong answer", ToyRounds(then: { _ in .ask([ToyRounds.second], state: Array("2;true".utf8)) })),
    Broken(what: "asks for a word twice and compares nothing", rule: .rounds, provider: choosing(compares: false)),
    toy("asks again for what it cannot judge", ToyRounds(then: { _ in .ask([ToyRounds.first], state: []) })),
    Broken(
      what: "asks for what its pad does not show", rule: .rounds,
      provider: ToyWord(
        descriptor: ToyWord.described(
          submit: [
            ToyWord.word, InputField(name: "pin", kind: .digits, isRequired: false),
            InputField(name: "new_pin", kind: .digits, isRequired: false),
          ],
          presentation: .digitPad(count: 6, current: "pin", new: "new_pin"))), subject: different),
  ]

  /// Asks twice for a new word.
  /// - Parameter compares: whether the two answers must be equal.
  static func choosing(compares: Bool) -> ToyWord {
    ToyWord(submits: { step, input in
      guard step.purpose == .set, step.account?.record == nil, let hasher = step.tools.hasher else {
        return try await ToyWord.check(step, input)
      }
      if step.state.isEmpty {
        return .ask([ToyWord.word], state: Array(try await hasher.hash(try ToyWord.typed(input)).utf8))
      }
      let first = String(decoding: step.state, as: UTF8.self)
      if compares {
        guard case .right = try await hasher.verify(try ToyWord.typed(input), against: first) else {
          return .refused("wrong_word")
        }
      }
      return .proved(Proof(record: .replaceOnce(step.state)))
    })
  }

  // MARK: records

  static let records: [Broken] = [
    word("sets its record without once", .once) { step, input in
      guard case .proved(let proof) = try await ToyWord.check(step, input), let record = proof.record.bytes else {
        return try await ToyWord.check(step, input)
      }
      return .proved(Proof(record: .replace(record)))
    },
    upgrading("records of version 2 without an upgrade", from: nil),
    upgrading("does not read records of version 1") { _, _ in throw ToyWord.Fault() },
    upgrading("loses the secret") { _, _ in Array("old:".utf8) },
    upgrading("makes a record that every answer fits") { _, _ in Array("any".utf8) },
    kept("under SHA-256 without a salt") { typed, _, _ in Hex.text(Digest.sha256.of(typed)) },
    kept("under MD5 in base64, among other things") { typed, step, _ in
      "{\"of\":\"\(step.account?.id ?? "")\",\"hash\":\"\(base64(Digest.md5.of(typed)))\"}"
    },
    // Attack: the id of an account appears in its sessions and logs.
    kept("under SHA-1 with the account's id") { typed, step, _ in
      Hex.text(Digest.sha1.of(Array((step.account?.id ?? "").utf8) + typed))
    },
    kept("under SHA-256 with a salt") { typed, _, salt in
      "\(Hex.text(salt)):\(Hex.text(Digest.sha256.of(salt + typed)))"
    },
    kept("under a slow hash with one salt for all") { typed, _, _ in
      "slow$" + Hex.text((0..<3).reduce(typed) { hash, _ in Digest.sha256.of(Array("pepper".utf8) + hash) })
    },
  ]

  /// A provider whose version 1 records are the word itself. An upgraded record is `old:` and the word; with `any`, the
  /// provider compares nothing.
  static func upgrading(
    from old: String? = "ninety-nine quiet pigeons", _ upgrades: (@Sendable ([UInt8], Int) async throws -> [UInt8])?
  ) -> (provider: ToyWord, subject: ConformanceSubject) {
    var toy = ToyWord(
      descriptor: ToyWord.described(recordVersion: 2),
      submits: { step, input in
        guard step.purpose == .prove, let record = step.account?.record.map({ String(decoding: $0, as: UTF8.self) })
        else {
          return try await ToyWord.check(step, input)
        }
        if record == "any" { return .proved(Proof()) }
        guard record.hasPrefix("old:") else { return try await ToyWord.check(step, input) }
        return try ToyWord.typed(input) == Array(record.utf8.dropFirst(4)) ? .proved(Proof()) : .refused("wrong_word")
      })
    if let upgrades { toy.upgrades = upgrades }
    var subject = ConformanceSubject(of: toy.descriptor)
    if let old { subject.oldRecords = [1: Array(old.utf8)] }
    return (toy, subject)
  }

  private static func upgrading(
    _ what: String, from old: String? = "ninety-nine quiet pigeons",
    _ upgrades: (@Sendable ([UInt8], Int) async throws -> [UInt8])? = nil
  ) -> Broken {
    let (provider, subject) = upgrading(from: old, upgrades)
    return Broken(what: what, rule: .upgrade, provider: provider, subject: subject)
  }

  private static func base64(_ bytes: [UInt8]) -> String {
    let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    let bits = bytes.flatMap { byte in (0..<8).map { Int(byte >> (7 - $0)) & 1 } }
    return String(
      stride(from: 0, to: bits.count, by: 6).map { start in
        letters[(0..<6).reduce(0) { $0 << 1 | (start + $1 < bits.count ? bits[start + $1] : 0) }]
      })
  }

  /// Stores the word in the given form, after an unused call of the hasher.
  private static func kept(
    _ what: String, _ keeps: @escaping @Sendable (_ typed: [UInt8], StepContext, _ salt: [UInt8]) -> String
  ) -> Broken {
    word(what, .hashing) { step, input in
      guard let hasher = step.tools.hasher else { throw ToyWord.Fault() }
      let typed = try ToyWord.typed(input)
      if step.purpose == .set {
        if step.account?.record != nil { return .refused(.alreadySet) }
        _ = try await hasher.hash(typed)
        return .proved(Proof(record: .replaceOnce(Array(keeps(typed, step, step.tools.randomBytes(16)).utf8))))
      }
      _ = try await hasher.verify(typed, against: nil)
      let record = String(decoding: step.account?.record ?? [], as: UTF8.self)
      let salt = record.split(separator: ":").first.map(String.init) ?? ""
      let bytes = stride(from: 0, to: salt.utf8.count - 1, by: 2).compactMap {
        UInt8(salt.dropFirst($0).prefix(2), radix: 16)
      }
      guard keeps(typed, step, bytes) == record else { return .refused("wrong_word") }
      return .proved(Proof(record: step.purpose == .disable ? .remove : .keep))
    }
  }

  // MARK: descriptors

  static let declarations: [Broken] = [
    Broken(
      what: "proves with a fact that it does not declare", rule: .facts,
      provider: ToyWord(submits: { step, input in
        guard case .proved = try await ToyWord.check(step, input), step.purpose == .prove, let known = step.identifier
        else {
          return try await ToyWord.check(step, input)
        }
        return .proved(
          Proof(proved: [
            Identifier(
              kind: .email, value: known.value, display: known.display,
              attributes: ["domain": "example.com", "vip": "true"])
          ]))
      })),
    word("tells a fact of its proof that it does not declare", .facts) { step, input in
      guard case .proved = try await ToyWord.check(step, input), step.purpose == .prove else {
        return try await ToyWord.check(step, input)
      }
      return .proved(Proof(facts: ["mood": "good"]))
    },
    Broken(what: "another declaration after its first step", rule: .descriptor, provider: LateShifter()),
    Broken(
      what: "boxes for a code, and sends none", rule: .descriptor,
      provider: ToyWord(descriptor: ToyWord.described(presentation: .codeEntry))),
    described("a code, shown by another site", ToyChannel.described(presentation: .externalSite(button: "Go"))),
    described(
      "words in a language that there is not",
      ToyChannel.described(words: StepWords(title: "Toy", translations: ["qzx": ["Toy": "Yot"]]))),
    // Attack: a provider includes a flow that replaces another provider's factor.
    described(
      "a flow about another's factor",
      ToyChannel.described(flows: [
        PolicySource(
          file: "flows/toy_reset.lua",
          text: #"return flow "toy_reset" { purpose = "reset", provider = "pin", steps = { { "toy" } } }"#)
      ])),
    described(
      "a flow that lets people in",
      ToyChannel.described(flows: [
        PolicySource(
          file: "flows/toy_in.lua", text: #"return flow "toy_in" { purpose = "sign_in", steps = { { "toy" } } }"#)
      ])
    ),
  ]
}

/// A descriptor that changes after the first call.
private struct LateShifter: CodeProvider {
  let count = SharedValue(0)

  var descriptor: ProviderDescriptor { ToyChannel.described(presentation: count.value > 0 ? .codeEntry : nil) }

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier { try input.email() }

  func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault) {
    _ = count.change { $0 + 1 }
    try await ToyChannel.send(code, identifier, tools)
  }
}
