import MoongateSDK

// The rule about records that an older version of the provider made.

extension FullRules {
  /// A record of each older version is read, and proves the same answer as before.
  ///
  /// Attack: an `upgrade` that turns every old record into one that any answer fits. One that loses the secret locks
  /// out every account at once.
  /// - Parameter able: a person whose answer is proved; nil if there is none.
  func judgeUpgrades(_ able: DryRun?) async {
    let newest = harness.descriptor.recordVersion
    guard newest > 1 else { return harness.passesOver(.upgrade, because: "its records have one version") }
    guard harness.wants(.upgrade) else { return }
    for version in 1..<newest {
      guard let old = subject.oldRecords[version] else {
        await lookForUpgrade(from: version)
        continue
      }
      guard let record = await upgraded(old, from: version), let able else { continue }
      harness.judges(.upgrade)
      await judgeUpgraded(record, from: version, able)
    }
    harness.passesOver(
      .upgrade,
      because: able == nil
        ? "the right answer is not proved"
        : "the subject has no record of an older version: name one for each version in `old_records`")
  }

  /// A provider in Swift has an `upgrade` or has none, whatever record it is asked about.
  private func lookForUpgrade(from version: Int) async {
    guard harness.watched == nil else { return }
    do {
      _ = try await provider.upgrade([], from: version)
    } catch let missing as RecordUpgradeMissing {
      findMissing(missing.version)
    } catch {
      // It reads no empty record, which is as it should be.
    }
  }

  private func findMissing(_ version: Int) {
    harness.finds(
      .upgrade,
      "Its records have version \(harness.descriptor.recordVersion), and it has no `upgrade` for a record of version \(version).",
      "Write `upgrade`: until then every account with such a record is answered 503.")
  }

  /// - Returns: nil if the record was not read, which is reported.
  private func upgraded(_ old: [UInt8], from version: Int) async -> [UInt8]? {
    let capabilities = RecordedCapabilities()
    switch await harness.call(capabilities, { [provider] in try await provider.upgrade(old, from: version) }) {
    case .answered(let record): return record
    case .late: return nil
    case .threw(let thrown):
      harness.finds(
        .upgrade,
        "`upgrade` does not read the subject's record of version \(version): it throws (\(thrown.text.prefix(160))).",
        "Convert records of every version that accounts may have. See that the subject's record is one of that version."
      )
      return nil
    }
  }

  private func judgeUpgraded(_ record: [UInt8], from version: Int, _ able: DryRun) async {
    for isRight in [true, false] {
      await subject.reset()
      harness.forget()
      harness.turn(to: subject.start)
      var person = able
      person.record = record
      guard let opened = await opened(person) else {
        harness.finds(
          .upgrade, "A step does not open with a record that was upgraded from version \(version).",
          "See that `upgrade` makes the record that `begin` reads.")
        return
      }
      let end = isRight ? await carried(person, opened) : await wronglyCarried(person, opened)
      switch (end, isRight) {
      case (nil, _), (.proved?, true): break
      case (.proved?, false):
        harness.finds(
          .upgrade, "A wrong answer is proved with a record that was upgraded from version \(version).",
          "Convert the record, and let `submit` compare with all of it.")
      case (let end?, true):
        harness.finds(
          .upgrade,
          "The right answer is not proved with a record that was upgraded from version \(version): `submit` \(end.explained).",
          "Convert the record so that the same answer fits it. See that the subject's record was made of its right answer."
        )
        return
      case (_, false): break
      }
    }
  }

  /// Answers each round wrongly.
  private func wronglyCarried(_ person: DryRun, _ first: DryRun.Opened) async -> DryRun.CallResult.Answer? {
    var opened = first
    for _ in 0..<Self.mostRounds {
      guard let fields = await wrong(opened) else { return nil }
      let answer = await person.submit(opened, fields).answer
      guard case .opened(let next) = answer else { return answer }
      opened = next
    }
    return nil
  }
}
