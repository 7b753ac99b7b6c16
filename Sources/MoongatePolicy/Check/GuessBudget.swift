import Foundation
import MoongateCore
import MoongateSDK

/// How many guesses a policy gives to an attacker who knows the identifier and has any number of addresses, devices and
/// flows, and how likely they are to be right.
///
/// What bounds such an attacker is what counts by the person, or by all: limits per address, network, device, flow or
/// challenge bound nothing alone, and consecutive failures are reset by the owner's own success. Where a number varies,
/// its worse end is taken. Of several limits each is a bound, so the smallest holds.
package struct GuessBudget: Sendable, Equatable {
  package let provider: ProviderName
  /// The most guesses in any half-open 24 hours; nil: unbounded.
  package let perDay: Int?
  /// The most guesses in any half-open 30 days; nil: unbounded.
  package let per30Days: Int?
  /// That one of the guesses of 30 days is right; nil where the secret's space is not known (a password).
  package let probability30Days: Double?

  private static let day: Duration = .seconds(86_400)

  /// - Parameter space: how many secrets there are, each equally likely; nil where that is not known.
  package init(_ policy: ProviderPolicy, space: Double?) {
    provider = policy.provider
    let bounds = policy.limits.filter { $0.action == .verify }.compactMap(GuessBound.init)
    perDay = bounds.map { $0.most(in: Self.day) }.min()
    per30Days = bounds.map { $0.most(in: Self.day * 30) }.min()
    if let space {
      probability30Days = per30Days.map { -expm1(Double($0) * log1p(-1 / space)) } ?? 1
    } else {
      probability30Days = nil
    }
  }

  /// For a provider whose secret is a code of the policy.
  package init(codesOf policy: ProviderPolicy) {
    self.init(policy, space: pow(Double(policy.code.alphabet.characters.count), Double(policy.code.length)))
  }
}

/// What one limit lets through, over all strategies.
///
/// After each lock the attacker may either go on at once, to the next and longer lock, or make one guess less than would
/// lock and wait until the window has passed: then those guesses have fallen out and the escalation begins anew. The best
/// mixture is found by working backwards over the time that is left; it does not step through locks, so that short ones cost
/// no more than long ones.
struct GuessBound: Sendable {
  private let max: Int
  /// Milliseconds.
  private let window: Int64
  /// Milliseconds; empty: no lock.
  private let lock: [Int64]
  private let disables: Bool

  /// - Returns: nil where the limit does not bound an attacker with means.
  init?(_ limit: Limit) {
    switch limit.key {
    case .phone, .email, .identifier, .account, .country, .prefix, .provider, .global: break
    case .ip, .network, .device, .flow, .challenge: return nil
    }
    guard limit.counts != .consecutiveFailures, let window = limit.window?.lowest else { return nil }
    max = limit.max.highest
    self.window = Swift.max(1, window.wholeMilliseconds)
    lock = limit.lock.map { Swift.max(1, $0.lowest.wholeMilliseconds) }
    disables = limit.disables
  }

  /// The grid has at most so many cells; where lengths do not fit it they are shortened to it, which errs towards more guesses.
  private static let mostCells: Int64 = 200_000

  /// The most guesses in any half-open span of the length.
  func most(in span: Duration) -> Int {
    let total = span.wholeMilliseconds
    let exact = (lock + [window, total]).reduce(0, Self.greatestCommonDivisor)
    let cell = Swift.max(exact, (total + Self.mostCells - 1) / Self.mostCells)
    let cells = Int((total + cell - 1) / cell)
    let wait = { (length: Int64) in Int(Swift.max(1, length / cell)) }
    if !lock.isEmpty, wait(lock[lock.count - 1]) == 1, lock[lock.count - 1] < cell { return overflowing(total) }
    let locks = lock.map(wait)
    let windowCells = wait(window)
    // most[level][left]: the most guesses with so many cells left, just after that many locks, with an empty counter.
    let levels = Swift.max(1, locks.count)
    var most = [[Int]](repeating: [Int](repeating: 0, count: cells + 1), count: levels + 1)
    guard cells > 0 else { return 0 }
    for left in 1...cells {
      let fresh = most[0][Swift.max(0, left - windowCells)]
      for level in 0...levels {
        // A burst that fills the limit; then its lock, or where there is none the window, or where it disables nothing any more.
        let onward: Int
        if disables {
          onward = 0
        } else if locks.isEmpty {
          onward = fresh
        } else {
          onward = most[Swift.min(level + 1, levels)][Swift.max(0, left - locks[Swift.min(level, locks.count - 1)])]
        }
        most[level][left] = Swift.max(max + onward, max - 1 + fresh)
      }
    }
    return most[0][cells]
  }

  /// Locks so short that the grid cannot show them: as many guesses as there are such locks in the span.
  private func overflowing(_ total: Int64) -> Int {
    let shortest = lock.min() ?? 1
    let bursts = total / shortest + 1
    let (product, overflow) = Int(bursts).multipliedReportingOverflow(by: max)
    return overflow ? .max : product
  }

  private static func greatestCommonDivisor(_ left: Int64, _ right: Int64) -> Int64 { right == 0 ? left : greatestCommonDivisor(right, left % right) }
}

extension Varying {
  var lowest: Value {
    switch self {
    case .fixed(let value): value
    case .varying(let lowest, _, _): lowest
    }
  }

  var highest: Value {
    switch self {
    case .fixed(let value): value
    case .varying(_, let highest, _): highest
    }
  }
}
