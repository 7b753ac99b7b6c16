import MoongateCore
import Synchronization

/// Counts wrong tokens on the admin listener per client address and minute.
final class AdminTokenFailures: Sendable {
  /// The number of wrong tokens per minute that are answered normally. It is far too small for guessing a token, and
  /// large enough that a monitor with an outdated token does not lock out other programs on its machine.
  static let most = 1_000
  /// The maximum number of addresses with separate counters per minute. Further addresses share one counter.
  private static let maxAddresses = 10_000
  private static let window: Duration = .seconds(60)

  private struct State {
    var end = Timestamp(milliseconds: .min)
    var counts: [[UInt8]: Int] = [:]
    var total = 0
    var turnedAway = 0

    mutating func begin(at now: Timestamp) {
      guard now >= end else { return }
      (end, counts) = (now + window, [:])
    }

    func key(_ address: ClientAddress) -> [UInt8] {
      let key = address.countingKey
      return counts[key] == nil && counts.count >= maxAddresses ? [] : key
    }
  }

  private let clock: any GatewayClock
  private let state = Mutex(State())

  init(clock: any GatewayClock) { self.clock = clock }

  /// How long requests of the address are refused; nil if they are answered.
  func wait(_ address: ClientAddress) -> Duration? {
    let now = clock.now()
    return state.withLock { state in
      state.begin(at: now)
      guard state.counts[state.key(address), default: 0] >= Self.most else { return nil }
      state.turnedAway += 1
      return state.end - now
    }
  }

  /// Records a wrong token from the address.
  func count(_ address: ClientAddress) {
    let now = clock.now()
    state.withLock { state in
      state.begin(at: now)
      state.total += 1
      state.counts[state.key(address), default: 0] += 1
    }
  }

  var families: [MetricFamily] {
    let (total, turnedAway) = state.withLock { ($0.total, $0.turnedAway) }
    return [
      MetricFamily(.adminWrongTokensTotal, total),
      MetricFamily(.adminTurnedAwayTotal, turnedAway),
    ]
  }
}
