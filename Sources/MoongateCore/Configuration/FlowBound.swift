/// The maximum number and total size of flows without any proof, in a gateway's memory and in the store.
///
/// Attack: flows that are created, or begun, until memory or disk is full. If there are too many, the address that has
/// the most loses its oldest ones, so that a flood evicts itself.
package struct FlowBound: Sendable, Hashable {
  /// The maximum for one client address (`ClientAddress.countingKey`).
  package static let perAddress = 1_000

  package var count: Int
  package var bytes: Int

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
  /// - Parameter flows: all flows, oldest first, each with its origin.
  /// - Returns: their indices in ascending order.
  package func surplus<Origin: Hashable>(of flows: [(origin: Origin, bytes: Int)]) -> [Int] {
    var kept = Array(Dictionary(grouping: flows.indices, by: { flows[$0].origin }).values)
    Self.trim(&kept, to: count) { _ in 1 }
    Self.trim(&kept, to: bytes) { flows[$0].bytes }
    var stays = [Bool](repeating: false, count: flows.count)
    for index in kept.joined() { stays[index] = true }
    return flows.indices.filter { !stays[$0] }
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
