import MoongateCore
import MoongateSDK
import NIOCore
import Synchronization

/// Who or what a request counts for in the `rate` of a route.
enum RateSubject: Hashable {
  case address(AddressKey)
  /// An account, or the account that stands for a service token.
  case account(String)
  /// The ID of an access token.
  case token(String)
  case everybody
}

/// A request beyond the `rate` of its route.
struct RateExcess {
  let rate: RouteRate
  /// The time until a request is within the rate again.
  let wait: Duration

  /// The fields of the response (draft-ietf-httpapi-ratelimit-headers sections 3 and 4): the policy, and that nothing
  /// remains of it for this time.
  var fields: [(String, String)] {
    let name = "\"\(rate.subject.rawValue)\""
    return [
      ("RateLimit-Policy", "\(name);q=\(rate.count);w=\(rate.window.retryAfterSeconds)"),
      ("RateLimit", "\(name);r=0;t=\(wait.retryAfterSeconds)"),
    ]
  }
}

/// The `rate` of one route, shared by all event loops.
final class RouteRateCounter: Sendable {
  let rate: RouteRate
  private let number: Int
  private let limit: Int
  private let slotLength: Int64
  private let table: RateTable

  fileprivate init(_ rate: RouteRate, number: Int, table: RateTable) {
    self.rate = rate
    self.number = number
    self.table = table
    limit = min(rate.count, Int(UInt32.max))
    // The bound of a year keeps the arithmetic below within Int64.
    slotLength = max(1, min(rate.window, .seconds(366 * 86_400)).wholeNanoseconds / SlidingWindow.parts)
  }

  /// Counts a request if it is within the rate.
  /// - Returns: nil if it is; it is not counted otherwise.
  func take(_ subject: RateSubject, at now: NIODeadline) -> RateExcess? {
    let time = Int64(clamping: now.uptimeNanoseconds)
    let slot = time / slotLength
    let free = table.withWindow(of: RateTable.Key(route: number, subject: subject)) { window in
      window.take(limit: limit, slot: slot) ? nil : window.nextFreeSlot
    }
    return free.map { RateExcess(rate: rate, wait: .nanoseconds(max(0, $0 * slotLength - time))) }
  }
}

/// The counters of all routes with `rate`. A node has one.
///
/// A route that a new generation contains unchanged keeps its counters.
final class RouteRates: Sendable {
  /// What makes two entries of two generations one route.
  private struct Identity: Hashable {
    let host: String?
    let path: String
    let methods: Set<String>?
    let rate: RouteRate
  }

  private struct State {
    var counters: [Identity: RouteRateCounter] = [:]
    var made = 0
  }

  let table: RateTable
  private let state = Mutex(State())

  init(capacity: Int = RateTable.usualCapacity) { table = RateTable(capacity: capacity) }

  /// The counters of the routes, by index, and forgets those of other routes.
  func counters(of routes: [Route]) -> [RouteRateCounter?] {
    if routes.allSatisfy({ $0.rate == nil }) { return routes.map { _ in nil } }
    return state.withLock { state in
      var used: [Identity: RouteRateCounter] = [:]
      let counters = routes.map { route -> RouteRateCounter? in
        guard let rate = route.rate else { return nil }
        let identity = Identity(host: route.host, path: route.path.text, methods: route.methods, rate: rate)
        if let known = used[identity] ?? state.counters[identity] {
          used[identity] = known
          return known
        }
        state.made += 1
        let made = RouteRateCounter(rate, number: state.made, table: table)
        used[identity] = made
        return made
      }
      state.counters = used
      return counters
    }
  }
}

/// The windows of all subjects of all routes.
///
/// Attack: a new address with every request fills the memory, or pushes the attacker's own counter out of it. The
/// number of windows is bounded: a full half replaces the half with the windows that were used longest ago. Addresses
/// have shards of their own, so that only requests with a session or token can push out those of accounts and tokens,
/// and only as many different addresses as a half holds push out an address, which are more requests than the addresses
/// would be allowed anyway.
final class RateTable: Sendable {
  struct Key: Hashable {
    let route: Int
    let subject: RateSubject
  }

  private struct Windows {
    var recent: [Key: SlidingWindow] = [:]
    var earlier: [Key: SlidingWindow] = [:]
  }

  private final class Shard: Sendable {
    let windows = Mutex(Windows())
  }

  /// Of windows. They take about 25 MB.
  static let usualCapacity = 131_072
  private static let shards = 16

  private let addresses: [Shard]
  private let others: [Shard]
  /// The number of windows in a half of a shard.
  private let half: Int

  /// - Parameter capacity: at most as many windows are kept.
  init(capacity: Int) {
    addresses = (0..<Self.shards).map { _ in Shard() }
    others = (0..<Self.shards).map { _ in Shard() }
    half = max(1, capacity / (4 * Self.shards))
  }

  /// The number of windows.
  var count: Int {
    (addresses + others).reduce(0) { sum, shard in
      sum + shard.windows.withLock { $0.recent.count + $0.earlier.count }
    }
  }

  func withWindow<Result: Sendable>(of key: Key, _ body: (inout SlidingWindow) -> Result) -> Result {
    let shards = if case .address = key.subject { addresses } else { others }
    return shards[key.hashValue & (Self.shards - 1)].windows.withLock { windows in
      if let place = windows.recent.index(forKey: key) { return body(&windows.recent.values[place]) }
      var window = windows.earlier.removeValue(forKey: key) ?? SlidingWindow()
      let result = body(&window)
      if windows.recent.count >= half {
        windows.earlier = windows.recent
        windows.recent = [:]
      }
      windows.recent[key] = window
      return result
    }
  }
}
