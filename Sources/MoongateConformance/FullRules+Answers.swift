import MoongateSDK

// The rules of a full provider that are about answers: wrong ones, parts of right ones, and fields that were not asked
// for.

extension FullRules {
  /// What came of an answer that is not right, when all that was asked after it was answered rightly.
  struct WrongAnswerResult {
    let first: DryRun.CallResult.Answer
    let end: DryRun.CallResult.Answer
    /// How many right answers were given after it.
    let following: Int
  }

  /// Gives an answer that is not right, and right ones to all that is asked after it.
  func wronged(_ person: DryRun, _ opened: DryRun.Opened, _ fields: [String: InputValue]) async -> WrongAnswerResult {
    let first = await person.submit(opened, fields).answer
    var end = first
    for following in 0..<Self.mostRounds * 2 {
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
    return WrongAnswerResult(first: first, end: end, following: Self.mostRounds * 2)
  }

  // MARK: refusals

  func judgeRefusals(_ person: DryRun) async {
    guard harness.wants(.refusals, .counted, .rounds) else { return }
    let count = rounds
    var isKnown = false
    for index in 0..<count {
      guard let person = await prepared(person.fresh(subject)), let opened = await reached(person, index) else {
        return
      }
      for _ in 0..<5 {
        guard let fields = await wrong(opened) else { break }
        isKnown = true
        harness.judges(.refusals)
        guard await isRefused(person, opened, fields, left: count - index - 1) else { return }
      }
      guard await isStillOpen(person, opened) else { return }
    }
    if !isKnown { harness.passesOver(.refusals, .counted, because: "the subject knows no wrong answer") }
  }

  /// Whether a wrong answer was refused, which is told otherwise.
  /// - Parameter left: how many rounds there are after this one.
  private func isRefused(_ person: DryRun, _ opened: DryRun.Opened, _ fields: [String: InputValue], left: Int) async
    -> Bool
  {
    let wronged = await wronged(person, opened, fields)
    let field = fields.keys.sorted().first(where: opened.asks)
    switch wronged.first {
    case .refused(let reason, let then):
      judgeCounted(reason, field)
      guard then != nil else { return true }
      return isAskedAgain(wronged, left: left, field)
    case .proved:
      if let field, await isPartCompared(field, person, opened) {
        tellPart(of: field, "a wrong answer that has something of the right one is proved.")
      } else {
        harness.finds(.refusals, "A wrong answer is proved.", "Compare before you prove.", field: field)
      }
    case .threw where harness.isBroken(.outcomes): return true
    case .threw(let thrown):
      harness.finds(
        .refusals, "A wrong answer is an error: \(thrown.text.prefix(200))",
        "Answer `.refused` with a declared reason: an error gives the try back, and guesses cost nothing.",
        field: field)
    case .malformed:
      harness.finds(
        .refusals, "A wrong answer is malformed, which is not counted.",
        "Answer `.refused` for what can be read and is wrong.", field: field)
    case .opened: return isJudgedLater(wronged, left: left, field)
    case .late: break
    }
    return false
  }

  /// Whether an answer is refused that has nothing of the right one: a wrong one that is proved had enough of it.
  private func isPartCompared(_ field: String, _ person: DryRun, _ opened: DryRun.Opened) async -> Bool {
    guard let right = await right(opened), case .text(let text)? = right[field], let other = AlteredAnswer.whole(text)
    else { return false }
    if case .refused = await wronged(person, opened, right.merging([field: .text(other)]) { _, new in new }).first {
      return true
    }
    return false
  }

  /// Attack: the outcome of a wrong answer is declared as no failure. Each try is given back, and the secret can be
  /// guessed.
  private func judgeCounted(_ reason: RefusalReason, _ field: String?) {
    guard let outcome = harness.descriptor.outcome(reason) else { return }
    harness.judges(.counted)
    if outcome.isFailure { return }
    harness.finds(
      .counted,
      "A wrong answer is not counted: it is refused with `\(reason.rawValue)`, whose outcome is declared with `isFailure: false`.",
      "Leave that out for every refusal of a wrong answer. A try is given back only where the refusal says nothing about a secret.",
      field: field)
  }

  /// A refusal that asks again: from there the right answers pass, and the wrong one must be among them.
  ///
  /// Attack: after a wrong answer to the first question the second one is asked, and its right answer alone passes.
  private func isAskedAgain(_ wronged: WrongAnswerResult, left: Int, _ field: String?) -> Bool {
    harness.judges(.rounds)
    guard case .proved = wronged.end else {
      harness.finds(
        .rounds, "After a refusal that asks again, the right answers are not proved: `submit` \(wronged.end.word).",
        "Give `.refused(reason, then: …)` the `state` that its round needs.", field: field)
      return false
    }
    if wronged.following > left { return true }
    harness.finds(
      .rounds,
      "A refusal goes on past the wrong answer: what is asked after it is proved, and the wrong answer was never given rightly.",
      "Ask in `.refused(reason, then: …)` for the round that was wrong, or for one before it.", field: field)
    return false
  }

  /// An answer after which something is asked: either it is judged at the end, or nobody has counted it.
  private func isJudgedLater(_ wronged: WrongAnswerResult, left: Int, _ field: String?) -> Bool {
    switch wronged.end {
    case .refused(let reason, _):
      judgeCounted(reason, field)
      return true
    case .proved where wronged.following <= left:
      harness.finds(
        .refusals, "A wrong answer in a round before the last is proved.",
        "Compare the answers of all rounds before you prove.", field: field)
    case .proved, .opened:
      harness.finds(
        .refusals, "A wrong answer is asked for again, which is not counted.",
        "Answer `.refused`: the core keeps the step open. With `.refused(reason, then: …)` another round is asked.",
        field: field)
    default:
      harness.finds(
        .refusals, "A wrong answer in a round before the last is not refused: `submit` \(wronged.end.word).",
        "Answer `.refused` where the answers end.",
        field: field)
    }
    return false
  }

  /// After wrong answers the right one is proved, where the step is still open.
  private func isStillOpen(_ person: DryRun, _ opened: DryRun.Opened) async -> Bool {
    guard let after = await carried(person, opened) else { return false }
    if case .proved = after { return true }
    harness.finds(
      .refusals, "After wrong answers the right one is not proved: `submit` \(after.word).",
      "Change nothing where you refuse: tries and locks are the core's to count.")
    return false
  }

  // MARK: the whole answer

  /// Each part of the right answer is changed, each by itself.
  ///
  /// Attack: of a phrase of two words one is compared, or of a code the first four digits: a guess is right a thousand
  /// times as often.
  func judgeWholeAnswer(_ person: DryRun) async {
    // Where a wrong answer is proved, so is every other.
    guard harness.wants(.wholeAnswer, .counted), !harness.isBroken(.refusals),
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
        harness.judges(.wholeAnswer)
        await judge(AlteredAnswer.all(of: text), of: field.name, right, person, opened, left: count - index - 1)
      }
    }
  }

  private func judge(
    _ altered: [AlteredAnswer], of field: String, _ right: [String: InputValue], _ person: DryRun,
    _ opened: DryRun.Opened, left: Int
  ) async {
    for altered in altered {
      let wronged = await wronged(person, opened, right.merging([field: .text(altered.text)]) { _, new in new })
      switch (wronged.first, wronged.end) {
      case (.refused(let reason, _), _): judgeCounted(reason, field)
      case (_, .proved) where wronged.following <= left:
        tellPart(of: field, "with \(altered.what) the answer is still proved.")
        return
      default: break
      }
    }
  }

  private func tellPart(of field: String, _ how: String) {
    harness.finds(
      .wholeAnswer, "Only a part of `\(field)` is compared: \(how)",
      "Compare all of it, in constant time. A field that is no part of the answer is named in `ConformanceSubject.uncompared`.",
      field: field)
  }

  // MARK: fields that were not asked for

  /// Fields that were not asked for in a round change no answer.
  ///
  /// Attack: a form with one field more, which the provider reads all the same. (The core drops it; a provider that
  /// waits for it never gets it.)
  func judgeAskedFields(_ person: DryRun) async {
    guard harness.wants(.askedFields), let person = await prepared(person.fresh(subject)) else { return }
    let declared = harness.descriptor.beginFields + harness.descriptor.submitFields
    for index in 0..<rounds {
      guard let opened = await reached(person, index), opened.redirect == nil, let right = await right(opened) else {
        continue
      }
      let beside = Examples.answers(declared, isRight: true).merging(right) { _, own in own }.filter {
        !opened.asks(for: $0.key)
      }
      // A right answer that is good once is not sent twice.
      for fields in [subject.isOneTime ? nil : right, await wrong(opened)].compactMap(\.self) {
        let without = await person.submit(opened, fields).answer.word
        for (name, value) in beside.sorted(by: { $0.key < $1.key }) {
          let with = await person.submit(opened, fields, unasked: [name: value]).answer.word
          if with == without { continue }
          harness.finds(
            .askedFields,
            "The field `\(name)` is read, and was not asked for in this round: with it `submit` \(with), without it \(without).",
            "Ask for it in this round's `.ask`, or do not read it: the core passes on only what was asked for.",
            field: name)
        }
      }
    }
  }
}

/// A right answer with a part of it changed.
struct AlteredAnswer {
  let text: String
  /// What was changed, for people.
  let what: String

  /// So many characters of an answer are changed, one after the other.
  private static let mostCharacters = 24

  /// Every word, characters all over, a character more and one less, and nothing at all. Spaces and punctuation stay as
  /// they are: readers may drop them.
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
        AlteredAnswer(text: changed(characters, Set(word)), what: "its word \(number + 1) of \(words.count) changed")
      }
    }
    let places = words.flatMap { Array($0) }
    let pace = max(1, (places.count + mostCharacters - 1) / mostCharacters)
    let ends = words.flatMap { [$0.lowerBound, $0.upperBound - 1] }.prefix(mostCharacters)
    for place in Set(stride(from: 0, to: places.count, by: pace).map { places[$0] }).union(ends).sorted() {
      found.append(
        AlteredAnswer(
          text: changed(characters, [place]), what: "its character \(place + 1) of \(characters.count) changed"))
    }
    if let last = places.last {
      found.append(AlteredAnswer(text: text + String(characters[last]), what: "a character more at its end"))
      found.append(AlteredAnswer(text: String(characters[..<last]), what: "its last character left out"))
    }
    return found + [AlteredAnswer(text: "", what: "nothing in it")]
  }

  /// The answer with all of it changed; nil where it has nothing that is compared.
  static func whole(_ text: String) -> String? {
    let characters = Array(text)
    let other = changed(characters, Set(characters.indices))
    return other == text ? nil : other
  }

  private static func isCompared(_ character: Character) -> Bool { character.isLetter || character.isNumber }

  /// Another character of the same answer takes the place of one, so that the answer stays what can be read; else one
  /// of its kind.
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
