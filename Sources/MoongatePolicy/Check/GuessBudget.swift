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
  /// Where people choose the secret themselves and its space is known: which part of the 1,000 most common ones the
  /// guesses of 30 days cover. The probability assumes that people choose evenly, and they do not.
  package let commonShare30Days: Double?
  /// The limit that lets so many through in 30 days: the strictest of those that bound an attacker with means. nil:
  /// none does.
  package let limit: Binding?

  /// A limit by name, and where it stands.
  package struct Binding: Sendable, Equatable {
    package let name: String
    package let location: SourceLocation
  }

  /// How many of the secrets that people choose are looked at as the most common ones.
  package static let common = 1_000

  private static let day: Duration = .seconds(86_400)

  /// - Parameters:
  ///   - space: how many secrets there are, each equally likely; nil where that is not known.
  ///   - isChosen: whether people choose it, and do not do so evenly.
  package init(_ policy: ProviderPolicy, space: Double?, isChosen: Bool = false) {
    provider = policy.provider
    let bounds = policy.limits.filter { $0.action == .verify }.compactMap { limit in
      GuessBound(limit).map { (limit: limit, bound: $0) }
    }
    perDay = bounds.map { $0.bound.most(in: Self.day) }.min()
    let months = bounds.map { (limit: $0.limit, most: $0.bound.most(in: Self.day * 30)) }
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

  /// For a provider whose secret people choose.
  /// - Parameter descriptor: says how many they may choose from.
  package init(chosenBy policy: ProviderPolicy, _ descriptor: ProviderDescriptor) {
    self.init(policy, space: descriptor.secretSpace.map(Double.init), isChosen: true)
  }

  /// For any provider, by what it declares.
  package init(of provider: any Provider, _ policy: ProviderPolicy) {
    let descriptor = provider.descriptor
    if provider is any CodeProvider {
      self.init(codesOf: policy)
    } else if descriptor.hashesSecrets {
      self.init(chosenBy: policy, descriptor)
    } else if descriptor.identifierKinds.contains(.federated) {
      self.init(nothingToGuessOf: policy.provider)
    } else {
      // Codes that nobody chose, such as an authenticator app's; where it is not said how many there are, their chance
      // is not known.
      self.init(policy, space: descriptor.secretSpace.map(Double.init))
    }
  }

  /// For a provider that is proved by a signature made elsewhere: it has no secret here.
  package init(nothingToGuessOf provider: ProviderName) {
    self.provider = provider
    perDay = 0
    per30Days = 0
    probability30Days = 0
    commonShare30Days = nil
    limit = nil
  }

  /// For a provider whose secret is a code of the policy.
  package init(codesOf policy: ProviderPolicy) {
    self.init(policy, space: pow(Double(policy.code.alphabet.characters.count), Double(policy.code.length)))
  }
}

extension GuessBudget {
  /// That of each provider of a generation.
  /// - Parameter providers: those of the program.
  package static func all(of generation: any PolicyGeneration, providers: ProviderRegistry) -> [GuessBudget] {
    (generation.registry ?? providers).all.compactMap { provider in
      generation.policies[provider.descriptor.name].map { GuessBudget(of: provider, $0) }
    }
  }
}

/// What one limit lets through, over all strategies.
///
/// After each lock the attacker may either go on at once, to the next and longer lock, or make one guess less than
/// would lock and wait until the window has passed: then those guesses have fallen out and the escalation begins anew.
/// The best mixture is found by working backwards over the time that is left; it does not step through locks, so that
/// short ones cost no more than long ones.
struct GuessBound: Sendable {
  fileprivate let max: Int
  /// Milliseconds.
  fileprivate let window: Int64
  /// Milliseconds; empty: no lock.
  fileprivate let lock: [Int64]
  fileprivate let disables: Bool

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

  /// The grid has at most so many cells; where lengths do not fit it they are shortened to it, which errs towards more
  /// guesses.
  fileprivate static let mostCells: Int64 = 200_000

  /// The most guesses in any half-open span of the length.
  func most(in span: Duration) -> Int {
    let total = span.wholeMilliseconds
    guard total > 0 else { return 0 }
    guard let table = Table(self, total: total) else { return overflowing(total) }
    return table.most[0][table.cells]
  }

  /// The strategy that makes the most guesses in the span: so many guesses at once, then so long a wait, and so on.
  /// - Returns: nil where locks are too short to plan with.
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

  /// The most guesses for each number of locks so far and each length of time that is left.
  private struct Table {
    let bound: GuessBound
    let cells: Int
    let locks: [Int]
    let window: Int
    /// most[level][left]: just after so many locks, with an empty counter and so many cells left.
    private(set) var most: [[Int]]

    /// - Returns: nil where locks are too short for the grid.
    init?(_ bound: GuessBound, total: Int64) {
      self.bound = bound
      let exact = (bound.lock + [bound.window, total]).reduce(0, GuessBound.greatestCommonDivisor)
      let cell = Swift.max(exact, (total + GuessBound.mostCells - 1) / GuessBound.mostCells)
      if let last = bound.lock.last, last < cell { return nil }
      let length = { (milliseconds: Int64) in Int(Swift.max(1, milliseconds / cell)) }
      cells = Int((total + cell - 1) / cell)
      locks = bound.lock.map(length)
      window = length(bound.window)
      most = [[Int]](repeating: [Int](repeating: 0, count: cells + 1), count: locks.count + 1)
      for left in 1...cells {
        for level in most.indices { most[level][left] = Swift.max(filling(level, left), waiting(left)) }
      }
    }

    private func after(_ level: Int, _ left: Int) -> Int { most[level][Swift.max(0, left)] }

    /// A burst that fills the limit, and its lock; where there is none, the window; or nothing any more.
    private func filling(_ level: Int, _ left: Int) -> Int {
      if bound.disables { return bound.max }
      if locks.isEmpty { return bound.max + after(0, left - window) }
      return bound.max + after(Swift.min(level + 1, locks.count), left - locks[Swift.min(level, locks.count - 1)])
    }

    /// One guess less, and the window.
    private func waiting(_ left: Int) -> Int { bound.max - 1 + after(0, left - window) }

    /// The better of the two, as it is played.
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

  /// Locks so short that the grid cannot show them: as many guesses as there are such locks in the span.
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
