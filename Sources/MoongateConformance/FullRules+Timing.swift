import MoongateSDK

// The rule about how long an answer takes.

extension FullRules {
  /// So many calls are measured of each person, one after the other in turns, so that a busy machine is busy for all of
  /// them.
  private static let calls = 15
  /// A difference that the network hides from nobody who asks often, and that is more than chance.
  private static let bound: Duration = .milliseconds(3)
  /// How often a difference has to be seen, one measurement after the other.
  private static let measurements = 3

  /// Attack: who asks with a list of addresses learns from the time of the answers which of them are registered.
  ///
  /// What is lent (hashes, requests, messages) is counted by the rule `unknown`. Here it is time: the fastest calls and
  /// the medians both have to differ, in each of several measurements, so that a busy machine is no finding.
  func judgeTiming(_ person: DryRun) async {
    guard conceals(person) else {
      harness.passesOver(.timing, because: Self.reveals)
      return
    }
    guard !harness.isBroken(.unknown) else {
      harness.passesOver(.timing, because: "other work is done already, which the rule `unknown` tells")
      return
    }
    guard harness.wants(.timing), let known = await prepared(person.fresh(subject)) else { return }
    guard let opened = await opened(known), let wrong = await wrong(opened) else {
      harness.passesOver(.timing, because: "the subject knows no wrong answer")
      return
    }
    harness.judges(.timing)
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
      harness.finds(
        .timing,
        "For an identifier that is \(whose), an answer takes \(other.median.inMilliseconds) ms, and \(one.median.inMilliseconds) ms for a known one.",
        "Do the same work for everybody: `hasher.verify(typed, against: nil)` takes as long as with a hash.")
    }
  }

  /// Times of a `begin` and a wrong answer, of two people in turns.
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

    /// Whether both the fastest and the median are apart, by so much and by half.
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
