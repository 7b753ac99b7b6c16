import MoongateSDK

// The rules of a full provider that are about the account's record.

extension FullRules {
  /// What is disabled is removed.
  func judgeRemoval(_ person: DryRun) async {
    guard harness.wants(.cleanup), subject.setsUp, let person = await prepared(person.fresh(subject)),
      let opened = await opened(person, .disable),
      case .proved(let proof)? = await carried(person, opened)
    else { return }
    if case .remove = proof.record { return }
    harness.finds(
      .cleanup, "A step of the purpose `disable` leaves the record in place.",
      "Answer `.proved(Proof(record: .remove))`.")
  }

  /// A secret that is set is not set again by a person who does not know it.
  func judgeSetOnce(_ person: DryRun) async {
    guard harness.wants(.proof), subject.setsUp, let person = await prepared(person.fresh(subject)),
      person.record != nil,
      let opened = await opened(person, .set), case .proved? = await carried(person, opened)
    else { return }
    harness.finds(
      .proof, "A step of the purpose `set` is proved though there is a secret already, and nobody asked for it.",
      "Refuse with `already_set` where `account.record` is there: a session that was left open makes itself a secret of its own otherwise. "
        + "`change` asks for the old one, and in a flow of the purpose `reset` something else was proved first.")
  }

  /// A change is judged as a set is, by the check of every proof. Not every provider has one.
  func judgeChange(_ person: DryRun) async {
    guard harness.wants(.once), subject.setsUp, let person = await prepared(person.fresh(subject)),
      let opened = await opened(person, .change)
    else {
      return
    }
    _ = await carried(person, opened)
  }

  // MARK: hashing

  /// Attack: who reads the database, or a backup of it, looks up a plain hash in a table, or sees that two accounts
  /// have the same secret.
  func judgeHashing(_ person: DryRun) async {
    guard subject.setsUp else {
      harness.passesOver(.hashing, because: "no secret is set by a step of the purpose `set`")
      return
    }
    guard harness.wants(.hashing) else { return }
    var one = person.fresh(subject)
    one.accountID = "ac_suite_1"
    var two = one
    two.accountID = "ac_suite_2"
    guard let first = await set(one), let second = await set(two) else { return }
    harness.judges(.hashing)
    let salts =
      [("the account's id", one.accountID), ("the provider's name", harness.descriptor.name.rawValue)]
      + (one.named.map { [("the identifier", $0.value)] } ?? [])
    let search = HashSearch(first.record, guessable: salts)
    for (text, isChosen) in first.chosen.map({ ($0, true) }) + first.shown.prefix(2).map({ ($0, false) }) {
      guard let found = search.find(text, isChosen: isChosen) else { continue }
      harness.finds(
        .hashing,
        found.isSalted
          ? "A secret is kept under a fast hash: the record has its \(found.digest.name) with a salt, and a graphics card tries billions of those a second."
          : "A secret is kept under a hash without a salt: the record has its \(found.digest.name)\(found.salt.map { " with \($0), which anybody knows" } ?? "").",
        "Keep what `tools.hasher` makes of it.")
      return
    }
    // Two accounts of one secret, and a third one of another: what only the first two share comes of the secret.
    guard Set(first.chosen) == Set(second.chosen), !first.chosen.isEmpty else { return }
    let shared = first.words.intersection(second.words)
    // Where nothing else can be chosen, the answer is no secret of theirs.
    for other in [Choice.wrong, .altered] {
      guard let third = await set(one, other), Set(third.chosen) != Set(first.chosen) else { continue }
      if shared.subtracting(third.words).isEmpty { return }
      return harness.finds(
        .hashing, "The same secret of two accounts makes the same record, so it is hashed without a salt of its own.",
        "Keep what `tools.hasher` makes of it.")
    }
  }

  /// What is chosen as a secret.
  private enum Choice {
    /// The subject's right answer.
    case right
    /// Its wrong one, which is as good a secret.
    case wrong
    /// The right one with a part changed.
    case altered
  }
  /// A record that was made, and of what.
  private struct MadeRecord {
    let record: [UInt8]
    /// What the person typed.
    let chosen: [String]
    /// What the person was given.
    let shown: [String]

    /// The long words of the record, and all of it.
    var words: Set<[UInt8]> {
      let words = record.split {
        !((48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || [43, 47, 61, 95].contains($0))
      }
      return Set(words.filter { $0.count >= 12 }.map { Array($0) } + [record])
    }
  }

  private func chosen(_ choice: Choice, _ opened: DryRun.Opened) async -> [String: InputValue]? {
    if choice == .wrong, !opened.fields.isEmpty { return await wrong(opened) }
    let right = await right(opened)
    guard choice == .altered else { return right }
    return right?.mapValues { value in
      guard case .text(let text) = value,
        let other = AlteredAnswer.all(of: text).first(where: { $0.text.count == text.count })
      else { return value }
      return .text(other.text)
    }
  }

  /// Sets a secret.
  private func set(_ person: DryRun, _ choice: Choice = .right) async -> MadeRecord? {
    await subject.reset()
    harness.forget()
    harness.turn(to: subject.start)
    guard var opened = await opened(person, .set) else { return nil }
    var (chosen, shown): ([String], [String]) = ([], [])
    for _ in 0..<Self.mostRounds {
      shown += opened.shown.flatMap { item -> [String] in
        switch item {
        case .list(let lines): lines
        case .secret(let text): [text]
        case .text, .qr, .ceremony: []
        }
      }
      guard let fields = await self.chosen(choice, opened) else { return nil }
      chosen += DryRun.secrets(fields.filter { opened.asks(for: $0.key) }, opened)
      switch await person.submit(opened, fields).answer {
      case .opened(let next): opened = next
      case .proved(let proof):
        // A code that answers what was shown was not chosen.
        let isMade = !shown.isEmpty
        return proof.record.bytes.map {
          MadeRecord(record: $0, chosen: isMade ? [] : chosen, shown: shown.filter { $0.count >= 6 })
        }
      default: return nil
      }
    }
    return nil
  }
}
