import MoongateSDK

// The rules about the account's record of a full provider.

extension FullRules {
  /// Disabling a factor removes its record.
  func checkRemoval(_ person: DryRun) async {
    guard harness.needs(.cleanup), subject.setsUp, let person = await prepared(person.fresh(subject)),
      let opened = await opened(person, .disable),
      case .proved(let proof)? = await carried(person, opened)
    else { return }
    if case .remove = proof.record { return }
    harness.addFinding(
      .cleanup, "A step of the purpose `disable` leaves the record in place.",
      "Answer `.proved(Proof(record: .remove))`.")
  }

  /// A user who does not know an existing secret cannot set another one.
  func checkSetOnce(_ person: DryRun) async {
    guard harness.needs(.proof), subject.setsUp, let person = await prepared(person.fresh(subject)),
      person.record != nil,
      let opened = await opened(person, .set), case .proved? = await carried(person, opened)
    else { return }
    harness.addFinding(
      .proof, "A step of the purpose `set` is proved although the account already has a secret that was not verified.",
      "Refuse with `already_set` if `account.record` exists: otherwise anyone with an open session could set another secret.  "
        + "`change` verifies the old secret, and in a flow of the purpose `reset` another factor was verified first.")
  }

  /// A change is checked like a set. Not every provider supports it.
  func checkChange(_ person: DryRun) async {
    guard harness.needs(.once), subject.setsUp, let person = await prepared(person.fresh(subject)),
      let opened = await opened(person, .change)
    else {
      return
    }
    _ = await carried(person, opened)
  }

  // MARK: hashing

  /// Attack: an attacker with the database or a backup looks up a plain hash in a table, or sees that two accounts have
  /// the same secret.
  func checkHashing(_ person: DryRun) async {
    guard subject.setsUp else {
      harness.markInapplicable(.hashing, because: "no secret is set by a step of the purpose `set`")
      return
    }
    guard harness.needs(.hashing) else { return }
    var one = person.fresh(subject)
    one.accountID = "ac_suite_1"
    var two = one
    two.accountID = "ac_suite_2"
    guard let first = await set(one), let second = await set(two) else { return }
    harness.markChecked(.hashing)
    let salts =
      [("the account's id", one.accountID), ("the provider's name", harness.descriptor.name.rawValue)]
      + (one.named.map { [("the identifier", $0.value)] } ?? [])
    let search = HashSearch(first.record, guessable: salts)
    for (text, isChosen) in first.chosen.map({ ($0, true) }) + first.shown.prefix(2).map({ ($0, false) }) {
      guard let found = search.find(text, isChosen: isChosen) else { continue }
      harness.addFinding(
        .hashing,
        found.isSalted
          ? "A secret is kept under a fast hash: the record has its \(found.digest.name) with a salt, and a graphics card can try billions of those per second."
          : "A secret is kept under a hash without a salt: the record has its \(found.digest.name)\(found.salt.map { " with \($0), which is public" } ?? "").",
        "Keep what `tools.hasher` makes of it.")
      return
    }
    // Compare two accounts with one secret and a third with another: what only the first two share depends on the
    // secret.
    guard Set(first.chosen) == Set(second.chosen), !first.chosen.isEmpty else { return }
    let shared = first.words.intersection(second.words)
    // If no other secret can be chosen, the answer is not a secret.
    for other in [Choice.wrong, .altered] {
      guard let third = await set(one, other), Set(third.chosen) != Set(first.chosen) else { continue }
      if shared.subtracting(third.words).isEmpty { return }
      return harness.addFinding(
        .hashing, "The same secret gives the same record in two accounts, so each hash lacks its own salt.",
        "Keep what `tools.hasher` makes of it.")
    }
  }

  /// The secret that is set.
  private enum Choice {
    /// The subject's right answer.
    case right
    /// The subject's wrong answer, which can be a secret too.
    case wrong
    /// The right answer with one part changed.
    case altered
  }
  /// A created record and its inputs.
  private struct CreatedRecord {
    let record: [UInt8]
    /// The input of the user.
    let chosen: [String]
    /// The content shown to the user.
    let shown: [String]

    /// The long words of the record, and the whole record.
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
  private func set(_ person: DryRun, _ choice: Choice = .right) async -> CreatedRecord? {
    await subject.reset()
    harness.forget()
    harness.setTime(to: subject.start)
    guard var opened = await opened(person, .set) else { return nil }
    var (chosen, shown): ([String], [String]) = ([], [])
    for _ in 0..<Self.maxRounds {
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
        // A code that is derived from shown content was not chosen.
        let isMade = !shown.isEmpty
        return proof.record.bytes.map {
          CreatedRecord(record: $0, chosen: isMade ? [] : chosen, shown: shown.filter { $0.count >= 6 })
        }
      default: return nil
      }
    }
    return nil
  }
}
