import NIOCore

/// The attempts of one request: which upstream of its route is tried, and whether another attempt follows.
///
/// Without `retry`, each upstream is tried once. `retry` adds attempts, which begin with the first upstream again after
/// the last one.
struct UpstreamAttempts {
  /// What follows a failed attempt.
  enum Next: Equatable {
    case end
    case now
    /// The next upstream was tried before, so it gets some time.
    case after(TimeAmount)
  }

  /// The time before the first upstream that was tried before. It doubles with each further attempt.
  static let pause: TimeAmount = .milliseconds(50)

  /// The order in which targets are tried; empty if there is only one.
  private let order: [Int]
  /// The number of failed attempts.
  private(set) var failed = 0
  private var retriesLeft: Int
  /// No attempt by `retry` begins later.
  private let deadline: NIODeadline

  /// - Parameters:
  ///   - order: the indices of the route's targets; empty for a single one.
  ///   - retries: the number of attempts by `retry`.
  ///   - deadline: the time after which `retry` begins no attempt.
  init(order: [Int] = [], retries: Int = 0, until deadline: NIODeadline = .uptimeNanoseconds(0)) {
    self.order = order
    retriesLeft = retries
    self.deadline = deadline
  }

  /// The index of the target that is tried.
  var target: Int { order.isEmpty ? 0 : order[failed % order.count] }

  /// The attempt has failed.
  /// - Parameters:
  ///   - isUsual: whether an upstream that was not tried before is tried without `retry`.
  ///   - isCovered: whether `retry` names the failure, and the request can be sent again.
  mutating func next(isUsual: Bool, isCovered: Bool, _ budget: inout RetryBudget, at now: NIODeadline) -> Next {
    let count = max(1, order.count)
    if !isUsual || failed + 1 >= count {
      guard isCovered, retriesLeft > 0, now < deadline, budget.take(at: now) else { return .end }
      retriesLeft -= 1
    }
    failed += 1
    return failed < count ? .now : .after(Self.pause * (1 << min(failed - count, 4)))
  }
}

/// Limits the retries of a route on one event loop: to a fifth of its requests and ten per second, with a reserve for a
/// short outage.
///
/// Attack: requests that a service cannot answer, sent again by the gateway, multiply the load of a service that is
/// overloaded or under attack, so that it does not recover.
struct RetryBudget {
  static let reserve = 100.0
  private static let perRequest = 0.2
  private static let perSecond = 10.0

  private var left = reserve
  private var filledAt = NIODeadline.uptimeNanoseconds(0)

  /// A request of the route has arrived.
  mutating func requestBegan() { left = min(Self.reserve, left + Self.perRequest) }

  /// Takes one retry.
  /// - Returns: false if none is left.
  mutating func take(at now: NIODeadline) -> Bool {
    let seconds = Double((now - filledAt).nanoseconds) / 1e9
    left = min(Self.reserve, left + max(0, seconds) * Self.perSecond)
    filledAt = now
    guard left >= 1 else { return false }
    left -= 1
    return true
  }
}
