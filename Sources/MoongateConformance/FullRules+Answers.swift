import MoongateSDK

// The rules about answers of a full provider: wrong answers, partly right answers, and fields that were not requested.

extension FullRules {
  /// The result of a wrong answer that is followed by right ones.
  struct WrongAnswerResult {
    let first: DryRun.CallResult.Answer
    let end: DryRun.CallResult.Answer
    /// The number of right answers after it.
    let following: Int
  }

  /// Gives a wrong answer, and right ones in all following rounds.
  func giveWrongAnswer(_ person: DryRun, _ opened: DryRun.Opened, _ fields: [String: InputValue]) async
    -> WrongAnswerResult
  {
    let first = await person.submit(opened, fields).answer
    var end = first
    for following in 0..<Self.maxRounds * 2 {
      let next: DryRun.Opened
      switch end {
      case .opened(let round): next = round
      case .refused(_, let round?): next = round
      default: return WrongAnswerResult(first: first, end: end, following: following)
      }
      guard let right = await right(next) else {
        return WrongAnswerResult(first: first, end: end, following: following)
      }
      end = await person.submit(next, right).answer
    }
    return WrongAnswerResult(first: first, end: end, following: Self.maxRounds * 2)
  }

  // MARK: refusals

  func checkRefusals(_ person: DryRun) async {
    guard harness.needs(.refusals, .counted, .rounds) else { return }
    let count = rounds
    var isKnown = false
    for index in 0..<count {
      guard let person = await prepared(person.fresh(subject)), let opened = await reached(person, index) else {
        return
      }
      for _ in 0..<5 {
        guard let fields = await wrong(opened) else { break }
        isKnown = true
        harness.markChecked(.refusals)
        guard await isRefused(person, opened, fields, left: count - index - 1) else { return }
      }
      guard await isStillOpen(person, opened) else { return }
    }
    if !isKnown { harness.markInapplicable(.refusals, .counted, because: "the subject knows no wrong answer") }
  }

  /// Whether a wrong answer is refused. Reports a finding otherwise.
  /// - Parameter left: the number of rounds after this one.
  private func isRefused(_ person: DryRun, _ opened: DryRun.Opened, _ fields: [String: InputValue], left: Int) async
    -> Bool
  {
    let reaction = await giveWrongAnswer(person, opened, fields)
    let field = fields.keys.sorted().first(where: opened.asks)
    switch reaction.first {
    case .refused(let reason, let then):
      checkCounted(reason, field)
      guard then != nil else { return true }
      return isAskedAgain(reaction, left: left, field)
    case .proved:
      if let field, await isPartCompared(field, person, opened) {
        reportIgnoredPart(of: field, "a partly right answer is proved.")
      } else {
        harness.addFinding(.refusals, "A wrong answer is proved.", "Compare before you prove.", field: field)
      }
    case .threw where harness.isBroken(.outcomes): return true
    case .threw(let thrown):
      harness.addFinding(
        .refusals, "A wrong answer is an error: \(thrown.text.prefix(200))",
        "Answer `.refused` with a declared reason: an error refunds the attempt, so guesses cost nothing.",
        field: field)
    case .malformed:
      harness.addFinding(
        .refusals, "A wrong answer is malformed, which is not counted.",
        "Answer `.refused` for what can be read and is wrong.", field: field)
    case .opened: return isCheckedLater(reaction, left: left, field)
    case .late: break
    }
    return false
  }

  /// Whether an answer that has nothing in common with the right one is refused. Then only a part is compared.
  private func isPartCompared(_ field: String, _ person: DryRun, _ opened: DryRun.Opened) async -> Bool {
    guard let right = await right(opened), case .text(let text)? = right[field], let other = AlteredAnswer.whole(text)
    else { return false }
    if case .refused = await giveWrongAnswer(person, opened, right.merging([field: .text(other)]) { _, new in new })
      .first
    {
      return true
    }
    return false
  }

  /// Attack: the outcome of a wrong answer is declared as no failure. Every attempt is refunded, and the secret can be
  /// guessed.
  private func checkCounted(_ reason: RefusalReason, _ field: String?) {
    guard let outcome = harness.descriptor.outcome(reason) else { return }
    harness.markChecked(.counted)
    if outcome.isFailure { return }
    harness.addFinding(
      .counted,
      "A wrong answer is not counted: it is refused with `\(reason.rawValue)`, whose outcome is declared with `isFailure: false`.",
      "Leave that out for every refusal of a wrong answer. Only a refusal that reveals nothing about a secret may refund the attempt.",
      field: field)
  }

  /// Checks a refusal that asks again. The right answers from there on must include the field that was wrong.
  ///
  /// Attack: after a wrong answer to the first question, the second one is asked, and its right answer alone succeeds.
  private func isAskedAgain(_ reaction: WrongAnswerResult, left: Int, _ field: String?) -> Bool {
    harness.markChecked(.rounds)
    guard case .proved = reaction.end else {
      harness.addFinding(
        .rounds, "After a refusal that asks again, the right answers are not proved: `submit` \(reaction.end.word).",
        "Give `.refused(reason, then: …)` the `state` that its round needs.", field: field)
      return false
    }
    if reaction.following > left { return true }
    harness.addFinding(
      .rounds,
      "A refusal continues after the wrong answer: the following answers are proved, but the wrong one was never corrected.",
      "Ask in `.refused(reason, then: …)` for the wrong round again, or for an earlier one.", field: field)
    return false
  }

  /// Checks an answer that is followed by another round: it must be checked at the end or counted.
  private func isCheckedLater(_ reaction: WrongAnswerResult, left: Int, _ field: String?) -> Bool {
    switch reaction.end {
    case .refused(let reason, _):
      checkCounted(reason, field)
      return true
    case .proved where reaction.following <= left:
      harness.addFinding(
        .refusals, "A wrong answer in a round before the last is proved.",
        "Compare the answers of all rounds before you prove.", field: field)
    case .proved, .opened:
      harness.addFinding(
        .refusals, "A round asks again after a wrong answer, which is not counted.",
        "Answer `.refused`: the core keeps the step open. With `.refused(reason, then: …)` another round is asked.",
        field: field)
    default:
      harness.addFinding(
        .refusals, "A wrong answer in a round before the last is not refused: `submit` \(reaction.end.word).",
        "Return `.refused` when a wrong answer is checked.",
        field: field)
    }
    return false
  }

  /// After wrong answers, the right one is proved if the step is still open.
  private func isStillOpen(_ person: DryRun, _ opened: DryRun.Opened) async -> Bool {
    guard let after = await carried(person, opened) else { return false }
    if case .proved = after { return true }
    harness.addFinding(
      .refusals, "After wrong answers the right one is not proved: `submit` \(after.word).",
      "Change nothing when you refuse: the core counts attempts and locks.")
    return false
  }

  // MARK: whole answer

  /// Changes each part of the right answer separately.
  ///
  /// Attack: only one word of a two-word phrase is compared, or only the first four digits of a code. A guess then
  /// succeeds a thousand times as often.
  func checkWholeAnswer(_ person: DryRun) async {
    // If a wrong answer is proved, altered ones are too.
    guard harness.needs(.wholeAnswer, .counted), !harness.isBroken(.refusals),
      let person = await prepared(person.fresh(subject))
    else { return }
    let count = rounds
    for index in 0..<count {
      guard let opened = await reached(person, index), opened.redirect == nil, let right = await right(opened) else {
        continue
      }
      for field in opened.fields
      where [.digits, .text, .password].contains(field.kind) && !subject.uncompared.contains(field.name) {
        guard case .text(let text)? = right[field.name], !text.isEmpty else { continue }
        harness.markChecked(.wholeAnswer)
        await check(AlteredAnswer.all(of: text), of: field.name, right, person, opened, left: count - index - 1)
      }
    }
  }

  /// More than five parameters: the altered answers, and the step that they are sent to.
  private func check(
    _ altered: [AlteredAnswer], of field: String, _ right: [String: InputValue], _ person: DryRun,
    _ opened: DryRun.Opened, left: Int
  ) async {
    for altered in altered {
      let reaction = await giveWrongAnswer(
        person, opened, right.merging([field: .text(altered.text)]) { _, new in new })
      switch (reaction.first, reaction.end) {
      case (.refused(let reason, _), _): checkCounted(reason, field)
      case (_, .proved) where reaction.following <= left:
        reportIgnoredPart(of: field, "with \(altered.what), the answer is still proved.")
        return
      default: break
      }
    }
  }

  private func reportIgnoredPart(of field: String, _ how: String) {
    harness.addFinding(
      .wholeAnswer, "Only a part of `\(field)` is compared: \(how)",
      "Compare all of it, in constant time. List fields that are not part of the answer in `ConformanceSubject.uncompared`.",
      field: field)
  }

  // MARK: fields that were not requested

  /// Fields that a round does not ask for must not affect the result.
  ///
  /// Attack: a client adds a field, and the provider reads it. (The core drops it, so a provider that needs it never
  /// receives it.)
  func checkAskedFields(_ person: DryRun) async {
    guard harness.needs(.askedFields), let person = await prepared(person.fresh(subject)) else { return }
    let declared = harness.descriptor.beginFields + harness.descriptor.submitFields
    for index in 0..<rounds {
      guard let opened = await reached(person, index), opened.redirect == nil, let right = await right(opened) else {
        continue
      }
      let beside = Examples.answers(declared, isRight: true).merging(right) { _, own in own }.filter {
        !opened.asks(for: $0.key)
      }
      // A one-time answer is not sent twice.
      for fields in [subject.isOneTime ? nil : right, await wrong(opened)].compactMap(\.self) {
        let without = await person.submit(opened, fields).answer.word
        for (name, value) in beside.sorted(by: { $0.key < $1.key }) {
          let with = await person.submit(opened, fields, unasked: [name: value]).answer.word
          if with == without { continue }
          harness.addFinding(
            .askedFields,
            "The field `\(name)` is read although this round does not ask for it: with it `submit` \(with), without it \(without).",
            "Ask for it in this round's `.ask`, or do not read it: the core passes on only what was asked for.",
            field: name)
        }
      }
    }
  }
}

/// A right answer with one part changed.
struct AlteredAnswer {
  let text: String
  /// A description of the change for messages.
  let what: String

  /// The maximum number of characters that are changed one by one.
  private static let maxCharacters = 24

  /// Variants with a changed word or character, an additional or missing character, and an empty one. Spaces and
  /// punctuation do not change, because they may be ignored.
  static func all(of text: String) -> [AlteredAnswer] {
    let characters = Array(text)
    var words: [Range<Int>] = []
    for (index, character) in characters.enumerated() where isCompared(character) {
      if let last = words.last, last.upperBound == index {
        words[words.count - 1] = last.lowerBound..<(index + 1)
      } else {
        words.append(index..<(index + 1))
      }
    }
    var found: [AlteredAnswer] = []
    if words.count > 1 {
      found += words.enumerated().map { number, word in
        AlteredAnswer(text: changed(characters, Set(word)), what: "word \(number + 1) of \(words.count) changed")
      }
    }
    let places = words.flatMap { Array($0) }
    let pace = max(1, (places.count + maxCharacters - 1) / maxCharacters)
    let ends = words.flatMap { [$0.lowerBound, $0.upperBound - 1] }.prefix(maxCharacters)
    for place in Set(stride(from: 0, to: places.count, by: pace).map { places[$0] }).union(ends).sorted() {
      found.append(
        AlteredAnswer(
          text: changed(characters, [place]), what: "character \(place + 1) of \(characters.count) changed"))
    }
    if let last = places.last {
      found.append(AlteredAnswer(text: text + String(characters[last]), what: "an additional character at the end"))
      found.append(AlteredAnswer(text: String(characters[..<last]), what: "the last character removed"))
    }
    return found + [AlteredAnswer(text: "", what: "an empty text")]
  }

  /// The answer with all parts changed; nil if nothing in it is compared.
  static func whole(_ text: String) -> String? {
    let characters = Array(text)
    let other = changed(characters, Set(characters.indices))
    return other == text ? nil : other
  }

  private static func isCompared(_ character: Character) -> Bool { character.isLetter || character.isNumber }

  /// Replaces characters by others of the same answer, so that it stays readable; otherwise by others of the same kind.
  private static func changed(_ characters: [Character], _ places: Set<Int>) -> String {
    String(
      characters.indices.map { place in
        let own = characters[place]
        guard places.contains(place), isCompared(own) else { return own }
        let alike = characters.filter {
          $0.isNumber == own.isNumber && $0.isUppercase == own.isUppercase && isCompared($0) && $0 != own
        }
        if !alike.isEmpty { return alike[place % alike.count] }
        return own.isNumber
          ? (own == "7" ? "3" : "7") : own.isUppercase ? (own == "Q" ? "K" : "Q") : (own == "q" ? "k" : "q")
      })
  }
}
