import MoongateCore
import Synchronization

/// Counts wrong tokens of the admin listener, for each client address and minute.
final class AdminTokenFailures: Sendable {
  /// So many wrong tokens are answered in a minute. Far too few to guess a token, and enough for a monitor whose token
  /// was changed not to lock out everybody else on its machine.
  static let most = 1_000
  /// So many addresses are told apart in a minute; beyond them the others count together.
  private static let mostAddresses = 10_000
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
      return counts[key] == nil && counts.count >= mostAddresses ? [] : key
    }
  }

  private let clock: any GatewayClock
  private let state = Mutex(State())

  init(clock: any GatewayClock) { self.clock = clock }

  /// How long nothing is answered to an address; nil: it is answered.
  func wait(_ address: ClientAddress) -> Duration? {
    let now = clock.now()
    return state.withLock { state in
      state.begin(at: now)
      guard state.counts[state.key(address), default: 0] >= Self.most else { return nil }
      state.turnedAway += 1
      return state.end - now
    }
  }

  /// A wrong token came from the address.
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
