import MoongateSDK

// The rule about response times.

extension FullRules {
  /// The number of measured calls per user, alternating, so that load affects all users equally.
  private static let calls = 15
  /// The minimum difference: large enough to measure over a network and to exclude chance.
  private static let bound: Duration = .milliseconds(3)
  /// The number of consecutive measurements that must show the difference.
  private static let measurements = 3

  /// Attack: an attacker measures response times for a list of addresses and learns which are registered.
  ///
  /// The rule `unknown` counts the use of tools (hashes, requests, messages). This rule measures time. To avoid false
  /// findings on a busy machine, both the minimum and the median must differ in each of several measurements.
  func checkTiming(_ person: DryRun) async {
    guard conceals(person) else {
      harness.markInapplicable(.timing, because: Self.reveals)
      return
    }
    guard !harness.isBroken(.unknown) else {
      harness.markInapplicable(.timing, because: "the work already differs, as the rule `unknown` reports")
      return
    }
    guard harness.needs(.timing), let known = await prepared(person.fresh(subject)) else { return }
    guard let opened = await opened(known), let wrong = await wrong(opened) else {
      harness.markInapplicable(.timing, because: "the subject knows no wrong answer")
      return
    }
    harness.markChecked(.timing)
    for (who, whose) in [(known.asNobody, "unknown"), (known.asWithoutRecord, "that of an account without a record")] {
      var last: (Times, Times)?
      for _ in 0..<Self.measurements {
        let times = await measured(known, who, wrong)
        guard times.0.differ(from: times.1, by: Self.bound) else {
          last = nil
          break
        }
        last = times
      }
      guard let (one, other) = last else { continue }
      harness.addFinding(
        .timing,
        "For an identifier that is \(whose), an answer takes \(other.median.inMilliseconds) ms, but \(one.median.inMilliseconds) ms for a known one.",
        "Do the same work for all users: `hasher.verify(typed, against: nil)` takes as long as with a hash.")
    }
  }

  /// The times of a `begin` and a wrong answer for two users, alternating.
  private func measured(_ one: DryRun, _ other: DryRun, _ wrong: [String: InputValue]) async -> (Times, Times) {
    var times = (Times(), Times())
    for call in 0..<Self.calls {
      for isOne in call.isMultiple(of: 2) ? [true, false] : [false, true] {
        let time = await ContinuousClock().measure {
          let person = isOne ? one : other
          if let opened = await opened(person) { _ = await person.submit(opened, wrong) }
        }
        if isOne { times.0.add(time) } else { times.1.add(time) }
      }
    }
    return times
  }

  private struct Times {
    private var all: [Duration] = []

    mutating func add(_ time: Duration) { all.append(time) }

    var median: Duration { all.sorted().dropFirst(all.count / 2).first ?? .zero }
    private var least: Duration { all.min() ?? .zero }

    /// Whether both minimum and median differ by at least the bound and by half.
    func differ(from other: Times, by bound: Duration) -> Bool {
      [(least, other.least), (median, other.median)].allSatisfy { one, other in
        let (short, long) = (min(one, other), max(one, other))
        return long - short > bound && long > short * 3 / 2
      }
    }
  }
}

extension Duration {
  fileprivate var inMilliseconds: Int64 { components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000 }
}
