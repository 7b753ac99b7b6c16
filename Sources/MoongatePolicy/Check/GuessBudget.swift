import Foundation
import MoongateCore
import MoongateSDK

/// The number of guesses that a policy allows an attacker who knows the identifier and has any number of addresses,
/// devices and flows, and the probability that one of them is right.
///
/// Only limits per user and global limits bound such an attacker. Limits per address, network, device, flow or
/// challenge do not, and the owner's own success resets consecutive failures. A varying number counts with its worst
/// value. The smallest bound of all limits applies.
package struct GuessBudget: Sendable, Equatable {
  package let provider: ProviderName
  /// The most guesses in any half-open 24 hours; nil: unbounded.
  package let perDay: Int?
  /// The most guesses in any half-open 30 days; nil: unbounded.
  package let per30Days: Int?
  /// The probability that a guess within 30 days is right; nil if the number of possible secrets is unknown
  /// (passwords).
  package let probability30Days: Double?
  /// For secrets that users choose from a known set: the share of the 1,000 most common secrets that the guesses of 30
  /// days cover. The probability assumes that all secrets are equally likely, which is not true for chosen ones.
  package let commonShare30Days: Double?
  /// The limit that determines `per30Days`: the strictest of those that bound such an attacker; nil if none does.
  package let limit: Binding?
  /// The length of the codes, if the secret is a code whose length the policy sets.
  private(set) var codeLength: Int?

  /// A limit with its name and location.
  package struct Binding: Sendable, Equatable {
    package let name: String
    package let location: SourceLocation
  }

  /// The number of most common secrets to compare with.
  package static let common = 1_000

  private static let day: Duration = .seconds(86_400)

  /// - Parameters:
  /// - space: the number of equally likely secrets; nil if it is unknown.
  /// - isChosen: whether users choose the secret, so that some secrets are more likely.
  /// - kinds: the kinds of identifier by which the secret can be tried.
  package init(_ policy: ProviderPolicy, space: Double?, isChosen: Bool = false, kinds: [IdentifierKind] = []) {
    provider = policy.provider
    // Attack: a limit by address does not count guesses at the same password by a user name.
    let counted = policy.limits.filter { limit in
      limit.action == .verify && kinds.allSatisfy { limit.key.kind == nil || limit.key.kind == $0 }
    }
    // Attack: guesses by a user name and by an address of the same account count separately, so that their owner is not
    // told by a lock.
    let ways = kinds.contains(where: \.isExclusive) ? kinds.count : 1
    let most = { (limit: Limit, bound: GuessBound, span: Duration) -> Int in
      let isPerWay = limit.key == .account || limit.key == .identifier
      let (product, isTooMany) = bound.most(in: span).multipliedReportingOverflow(by: isPerWay ? ways : 1)
      return isTooMany ? .max : product
    }
    let bounds = counted.compactMap { limit in GuessBound(limit).map { (limit: limit, bound: $0) } }
    perDay = bounds.map { most($0.limit, $0.bound, Self.day) }.min()
    let months = bounds.map { (limit: $0.limit, most: most($0.limit, $0.bound, Self.day * 30)) }
    let strictest = months.min { $0.most < $1.most }
    per30Days = strictest?.most
    limit = strictest.map { Binding(name: $0.limit.name, location: $0.limit.location) }
    if let space {
      probability30Days = per30Days.map { -expm1(Double($0) * log1p(-1 / space)) } ?? 1
    } else {
      probability30Days = nil
    }
    commonShare30Days = isChosen && space != nil ? min(1, Double(per30Days ?? .max) / Double(Self.common)) : nil
  }

  /// The budget of a provider whose secrets users choose.
  /// - Parameter descriptor: declares the number of possible secrets.
  package init(chosenBy policy: ProviderPolicy, _ descriptor: ProviderDescriptor) {
    self.init(
      policy, space: descriptor.secretSpace.map(Double.init), isChosen: true, kinds: descriptor.identifierKinds)
  }

  /// The budget of any provider, by its declarations.
  package init(of provider: any Provider, _ policy: ProviderPolicy) {
    let descriptor = provider.descriptor
    if provider is any CodeProvider {
      self.init(codesOf: policy)
    } else if !descriptor.takesGuesses {
      self.init(nothingToGuessOf: policy.provider)
    } else if descriptor.hashesSecrets || descriptor.identifierKinds.contains(.federated) {
      self.init(chosenBy: policy, descriptor)
    } else {
      // Generated codes, such as those of an authenticator app. Without a declared number of codes, the probability is
      // unknown.
      self.init(policy, space: descriptor.secretSpace.map(Double.init))
    }
  }

  /// The budget of a provider without secrets in this gateway, which verifies a signature that is made elsewhere.
  package init(nothingToGuessOf provider: ProviderName) {
    self.provider = provider
    perDay = 0
    per30Days = 0
    probability30Days = 0
    commonShare30Days = nil
    limit = nil
  }

  /// The budget of a provider whose secret is a code of the policy.
  package init(codesOf policy: ProviderPolicy) {
    self.init(policy, space: pow(Double(policy.code.alphabet.characters.count), Double(policy.code.length)))
    codeLength = policy.code.length
  }
}

extension GuessBudget {
  /// The budgets of all providers of a generation.
  /// - Parameter providers: the providers of the program.
  package static func all(of generation: any PolicyGeneration, providers: ProviderRegistry) -> [GuessBudget] {
    (generation.registry ?? providers).all.compactMap { provider in
      generation.policies[provider.descriptor.name].map { GuessBudget(of: provider, $0) }
    }
  }
}

/// The guesses that one limit allows, over all strategies.
///
/// After each lock, an attacker can either continue, until the next and longer lock, or make one guess less than the
/// limit and wait for the window to pass. The counter is then empty, and the escalation of locks begins again. The best
/// combination is found by dynamic programming over the remaining time. It does not step through single locks, so short
/// locks cost no more computation than long ones.
struct GuessBound: Sendable {
  fileprivate let max: Int
  /// In milliseconds.
  fileprivate let window: Int64
  /// In milliseconds; empty: no lock.
  fileprivate let lock: [Int64]
  fileprivate let disables: Bool

  /// - Returns: nil if the limit does not bound an attacker with many addresses and devices.
  init?(_ limit: Limit) {
    switch limit.key {
    case .phone, .email, .identifier, .account, .country, .prefix, .provider, .global: break
    case .ip, .network, .clientCountry, .asn, .device, .flow, .challenge: return nil
    }
    guard limit.counts != .consecutiveFailures, let window = limit.window?.lowest else { return nil }
    max = limit.max.highest
    self.window = Swift.max(1, window.wholeMilliseconds)
    lock = limit.lock.map { Swift.max(1, $0.lowest.wholeMilliseconds) }
    disables = limit.disables
  }

  /// The maximum number of cells of the time grid. Durations that do not fit are rounded down to a cell, which only
  /// overestimates the guesses.
  fileprivate static let maxCells: Int64 = 200_000

  /// The most guesses in any half-open span of this length.
  func most(in span: Duration) -> Int {
    let total = span.wholeMilliseconds
    guard total > 0 else { return 0 }
    guard let table = Table(self, total: total) else { return overflowing(total) }
    return table.most[0][table.cells]
  }

  /// The strategy with the most guesses in the span, as bursts of guesses with a wait after each.
  /// - Returns: nil if locks are too short for the grid.
  func plan(for span: Duration) -> [(guesses: Int, wait: Duration)]? {
    guard span > .zero, let table = Table(self, total: span.wholeMilliseconds) else { return nil }
    var plan: [(guesses: Int, wait: Duration)] = []
    var left = table.cells
    var level = 0
    while left > 0 {
      let burst = table.burst(level, left)
      if burst.guesses > 0 { plan.append((burst.guesses, .milliseconds(burst.wait))) }
      guard burst.next.left < left else { break }
      (level, left) = burst.next
    }
    return plan
  }

  /// The most guesses by the number of locks so far and the remaining time.
  private struct Table {
    let bound: GuessBound
    let cells: Int
    let locks: [Int]
    let window: Int
    /// `most[level][left]`: the most guesses just after `level` locks, with an empty counter and `left` cells
    /// remaining.
    private(set) var most: [[Int]]

    /// - Returns: nil if locks are too short for the grid.
    init?(_ bound: GuessBound, total: Int64) {
      self.bound = bound
      let exact = (bound.lock + [bound.window, total]).reduce(0, GuessBound.greatestCommonDivisor)
      let cell = Swift.max(exact, (total + GuessBound.maxCells - 1) / GuessBound.maxCells)
      if let last = bound.lock.last, last < cell { return nil }
      let length = { (milliseconds: Int64) in Int(Swift.max(1, milliseconds / cell)) }
      cells = Int((total + cell - 1) / cell)
      locks = bound.lock.map(length)
      window = length(bound.window)
      most = [[Int]](repeating: [Int](repeating: 0, count: cells + 1), count: locks.count + 1)
      for left in 1...cells {
        let waiting = waiting(left)
        for level in 0...locks.count { most[level][left] = Swift.max(filling(level, left), waiting) }
      }
    }

    private func after(_ level: Int, _ left: Int) -> Int { most[level][Swift.max(0, left)] }

    /// The guesses of a burst that reaches the limit, then waits for the lock, or for the window if there is no lock.
    private func filling(_ level: Int, _ left: Int) -> Int {
      if bound.disables { return bound.max }
      if locks.isEmpty { return bound.max + after(0, left - window) }
      return bound.max + after(Swift.min(level + 1, locks.count), left - locks[Swift.min(level, locks.count - 1)])
    }

    /// The guesses of a burst that stays one below the limit, then waits for the window.
    private func waiting(_ left: Int) -> Int { bound.max - 1 + after(0, left - window) }

    /// The better of the two strategies for the next burst.
    func burst(_ level: Int, _ left: Int) -> (guesses: Int, wait: Int64, next: (level: Int, left: Int)) {
      if waiting(left) > filling(level, left) {
        return (bound.max - 1, bound.window, (0, Swift.max(0, left - window)))
      }
      if bound.disables { return (bound.max, 0, (level, 0)) }
      if locks.isEmpty { return (bound.max, bound.window, (0, Swift.max(0, left - window))) }
      let step = Swift.min(level, locks.count - 1)
      return (bound.max, bound.lock[step], (Swift.min(level + 1, locks.count), Swift.max(0, left - locks[step])))
    }
  }

  /// For locks that are too short for the grid: the guesses of all bursts that fit into the span.
  private func overflowing(_ total: Int64) -> Int {
    let shortest = lock.min() ?? 1
    let bursts = total / shortest + 1
    let (product, overflow) = Int(bursts).multipliedReportingOverflow(by: max)
    return overflow ? .max : product
  }

  fileprivate static func greatestCommonDivisor(_ left: Int64, _ right: Int64) -> Int64 {
    right == 0 ? left : greatestCommonDivisor(right, left % right)
  }
}
