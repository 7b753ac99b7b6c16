import MoongateSDK

// The rule about records of older provider versions.

extension FullRules {
  /// A record of each older version is read and accepts the same answer as before.
  ///
  /// Attack: an `upgrade` that converts every old record into one that accepts any answer. An upgrade that loses the
  /// secret locks out all accounts.
  /// - Parameter able: a user whose answer is proved; nil if none exists.
  func checkUpgrades(_ able: DryRun?) async {
    let newest = harness.descriptor.recordVersion
    guard newest > 1 else { return harness.markInapplicable(.upgrade, because: "its records have one version") }
    guard harness.needs(.upgrade) else { return }
    for version in 1..<newest {
      guard let old = subject.oldRecords[version] else {
        await lookForUpgrade(from: version)
        continue
      }
      guard let record = await upgraded(old, from: version), let able else { continue }
      harness.markChecked(.upgrade)
      await checkUpgraded(record, from: version, able)
    }
    harness.markInapplicable(
      .upgrade,
      because: able == nil
        ? "the right answer is not proved"
        : "the subject has no record of an older version: name one for each version in `old_records`")
  }

  /// Checks whether a Swift provider implements `upgrade` for the version, with an empty record.
  private func lookForUpgrade(from version: Int) async {
    guard harness.watched == nil else { return }
    do {
      _ = try await provider.upgrade([], from: version)
    } catch let missing as RecordUpgradeMissing {
      findMissing(missing.version)
    } catch {
      // Refusing an empty record is correct.
    }
  }

  private func findMissing(_ version: Int) {
    harness.addFinding(
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
      harness.addFinding(
        .upgrade,
        "`upgrade` does not read the subject's record of version \(version): it throws (\(thrown.text.prefix(160))).",
        "Convert records of every version that accounts may have. Make sure that the subject's record has that version."
      )
      return nil
    }
  }

  private func checkUpgraded(_ record: [UInt8], from version: Int, _ able: DryRun) async {
    for isRight in [true, false] {
      await subject.reset()
      harness.forget()
      harness.setTime(to: subject.start)
      var person = able
      person.record = record
      guard let opened = await opened(person) else {
        harness.addFinding(
          .upgrade, "A step cannot be opened with a record that was upgraded from version \(version).",
          "Make sure that `upgrade` creates a record that `begin` can read.")
        return
      }
      let end = isRight ? await carried(person, opened) : await giveWrongAnswersInEachRound(person, opened)
      switch (end, isRight) {
      case (nil, _), (.proved?, true): break
      case (.proved?, false):
        harness.addFinding(
          .upgrade, "A wrong answer is proved with a record that was upgraded from version \(version).",
          "Convert the record, and let `submit` compare with all of it.")
      case (let end?, true):
        harness.addFinding(
          .upgrade,
          "The right answer is not proved with a record that was upgraded from version \(version): `submit` \(end.explained).",
          "Convert the record so that it accepts the same answer. Make sure that the subject's record matches its right answer."
        )
        return
      case (_, false): break
      }
    }
  }

  /// Gives a wrong answer in each round.
  private func giveWrongAnswersInEachRound(_ person: DryRun, _ first: DryRun.Opened) async -> DryRun.CallResult.Answer?
  {
    var opened = first
    for _ in 0..<Self.maxRounds {
      guard let fields = await wrong(opened) else { return nil }
      let answer = await person.submit(opened, fields).answer
      guard case .opened(let next) = answer else { return answer }
      opened = next
    }
    return nil
  }
}
