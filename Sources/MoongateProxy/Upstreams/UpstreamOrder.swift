import MoongateCore
import NIOCore

/// The order in which the requests of a route try its upstreams, on one event loop (`balance`). Upstreams that do not
/// work come last.
struct UpstreamOrder {
  /// Whom a request is from, for `sticky`.
  enum StickySubject {
    case account(String)
    case address(ClientAddress)
  }

  private let balance: UpstreamBalance
  private let targets: [UpstreamTarget]
  /// What health checks have found out about each target; empty without them.
  private let health: [UpstreamHealth]
  private let keys: KeyRing
  /// The share of each target in `sticky`.
  private let seeds: [UInt64]
  /// The index of the target that is tried first, of equal ones.
  private var next = 0

  init(_ route: Route, targets: [UpstreamTarget], health: [UpstreamHealth], keys: KeyRing) {
    balance = route.balance
    self.targets = targets
    self.health = health
    self.keys = keys
    seeds = route.balance == .sticky ? targets.map { Self.hash(["upstream", $0.upstream.description], keys) } : []
  }

  /// The indices of all targets, in the order for the next request.
  mutating func take(for requester: @autoclosure () -> StickySubject, at now: NIODeadline) -> [Int] {
    var order = Array(targets.indices)
    switch balance {
    case .first: break
    case .roundRobin: rotate(&order)
    case .leastBusy:
      rotate(&order)
      // Of equal ones, the rotated order decides.
      order = order.enumerated().sorted {
        (targets[$0.element].busy, $0.offset) < (targets[$1.element].busy, $1.offset)
      }.map(\.element)
    case .sticky:
      let weights = weights(for: requester())
      order.sort { (weights[$0], $1) > (weights[$1], $0) }
    }
    if order.allSatisfy({ works($0, at: now) }) { return order }
    return order.filter { works($0, at: now) } + order.filter { !works($0, at: now) }
  }

  private mutating func rotate(_ order: inout [Int]) {
    let first = next
    next = (first + 1) % targets.count
    for index in order.indices { order[index] = (first + index) % targets.count }
  }

  /// Attack: by a request that the service does not survive, a user moves all users of a sticky route to another
  /// upstream, where their work is unknown. Only what no request can cause moves them.
  private func works(_ index: Int, at now: NIODeadline) -> Bool {
    if !health.isEmpty, !health[index].isPassing { return false }
    return balance == .sticky ? !targets[index].isUnreachable(at: now) : !targets[index].isDown(at: now)
  }

  /// Rendezvous hashing: if an upstream fails, only its users move, and they return when it works again. All gateways
  /// of a store choose alike.
  ///
  /// Attack: a client reads from a cookie or a header which account or upstream it has, or chooses addresses that all
  /// belong to one upstream. Nothing is sent to clients or services, and the hash is keyed.
  private func weights(for requester: StickySubject) -> [UInt64] {
    let hash: UInt64 =
      switch requester {
      case .account(let id): Self.hash(["upstream of an account", id], keys)
      // For IPv6 the /64, because a device changes the rest.
      case .address(let address):
        Self.hash(["upstream of an address", ClientAddress.text(address.countingKey)], keys)
      }
    return seeds.map { Self.mix(hash ^ $0) }
  }

  private static func hash(_ parts: [String], _ keys: KeyRing) -> UInt64 {
    keys.counterKey(parts.map { Array($0.utf8) }).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// The finalizer of SplitMix64: a bijection in which each bit depends on all others.
  private static func mix(_ value: UInt64) -> UInt64 {
    var mixed = (value ^ value >> 30) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
    return mixed ^ mixed >> 31
  }
}
