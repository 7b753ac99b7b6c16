/// The maximum number and total size of flows without any proof, in a gateway's memory and in the store.
///
/// Attack: flows that are created, or begun, until memory or disk is full. If there are too many, the address that has
/// the most loses its oldest ones, so that a flood evicts itself. First the networks are compared, then the addresses
/// within one: a /48 of IPv6 has 65,536 addresses that count separately. Half of the bound is kept for flows that a
/// browser has opened, which costs a flood more than a call.
package struct FlowBound: Sendable, Hashable {
  /// The maximum for one client address (`ClientAddress.countingKey`).
  package static let perAddress = 1_000

  package var count: Int
  package var bytes: Int

  /// A flow, as far as it matters for the bound.
  package struct Member<Origin: Hashable & Sendable>: Sendable {
    /// The address that it counts for.
    package let origin: Origin
    /// The network of that address.
    package let network: Origin
    /// Whether a browser has opened it.
    package let isOpened: Bool
    package let bytes: Int

    package init(origin: Origin, network: Origin, isOpened: Bool, bytes: Int) {
      self.origin = origin
      self.network = network
      self.isOpened = isOpened
      self.bytes = bytes
    }
  }

  package init(count: Int = 100_000, bytes: Int = 64 << 20) {
    self.count = count
    self.bytes = bytes
  }

  package func holds(count: Int, bytes: Int) -> Bool { count <= self.count && bytes <= self.bytes }

  /// The target of a sweep: for a large bound, a tenth below it, so that the next sweep is not due at once.
  package var swept: FlowBound {
    count < 1_000 ? self : FlowBound(count: count - count / 10, bytes: bytes - bytes / 10)
  }

  /// The flows to remove.
  /// - Parameter flows: all flows, oldest first.
  /// - Returns: their indices in ascending order.
  package func surplus<Origin>(of flows: [Member<Origin>]) -> [Int] {
    var kept = Array(flows.indices)
    kept = share(kept, flows, of: count) { _ in 1 }
    kept = share(kept, flows, of: bytes) { flows[$0].bytes }
    var stays = [Bool](repeating: false, count: flows.count)
    for index in kept { stays[index] = true }
    return flows.indices.filter { !stays[$0] }
  }

  /// The flows that stay. Those that a browser has opened lose nothing to others while they need at most half.
  private func share<Origin>(
    _ indices: [Int], _ flows: [Member<Origin>], of most: Int, weight: (Int) -> Int
  ) -> [Int] {
    func total(_ indices: [Int]) -> Int { indices.reduce(0) { $0 + weight($1) } }
    guard total(indices) > most else { return indices }
    let opened = indices.filter { flows[$0].isOpened }
    let others = indices.filter { !flows[$0].isOpened }
    let left = fair(others, flows, within: most - min(total(opened), most / 2), weight: weight)
    return fair(opened, flows, within: most - total(left), weight: weight) + left
  }

  /// The flows that stay if each network, and within a network each address, gets the same share.
  private func fair<Origin>(
    _ indices: [Int], _ flows: [Member<Origin>], within most: Int, weight: (Int) -> Int
  ) -> [Int] {
    var networks = Array(Dictionary(grouping: indices.sorted(), by: { flows[$0].network }).values)
    let whole = networks
    Self.trim(&networks, to: most, weight: weight)
    return zip(whole, networks).flatMap { all, kept -> [Int] in
      guard kept.count < all.count else { return all }
      var addresses = Array(Dictionary(grouping: all, by: { flows[$0].origin }).values)
      Self.trim(&addresses, to: kept.reduce(0) { $0 + weight($1) }, weight: weight)
      return addresses.flatMap(\.self)
    }
  }

  /// Removes the oldest items of the heaviest groups until the total weight is at most `most`. This caps all groups at
  /// a common level, which is chosen as high as possible.
  private static func trim(_ groups: inout [[Int]], to most: Int, weight: (Int) -> Int) {
    let heaviest = groups.map { $0.reduce(0) { $0 + weight($1) } }
    if heaviest.reduce(0, +) <= most { return }
    // How many of its newest items a group keeps below a level, and their weight.
    func kept(_ group: [Int], _ level: Int) -> (count: Int, weight: Int) {
      var (count, sum) = (0, 0)
      while count < group.count, sum + weight(group[group.count - 1 - count]) <= level {
        sum += weight(group[group.count - 1 - count])
        count += 1
      }
      return (count, sum)
    }
    var (level, tooHigh) = (0, (heaviest.max() ?? 0) + 1)
    while tooHigh - level > 1 {
      let middle = level + (tooHigh - level) / 2
      if groups.reduce(0, { $0 + kept($1, middle).weight }) <= most { level = middle } else { tooHigh = middle }
    }
    var left = most
    var next: [(index: Int, group: Int)] = []
    for number in groups.indices {
      let (count, sum) = kept(groups[number], level)
      left -= sum
      if count < groups[number].count { next.append((groups[number][groups[number].count - 1 - count], number)) }
      groups[number] = Array(groups[number].suffix(count))
    }
    // The remaining weight goes to the newest items of equally heavy groups.
    for (index, group) in next.sorted(by: { $0.index > $1.index }) where weight(index) <= left {
      left -= weight(index)
      groups[group].insert(index, at: 0)
    }
  }
}
