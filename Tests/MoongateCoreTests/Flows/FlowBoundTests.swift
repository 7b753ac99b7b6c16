import Testing

@testable import MoongateCore

/// Which flows are dropped when there are too many.
@Suite struct FlowBoundTests {
  private func surplus(_ flows: [(String, Int)], count: Int = 1_000, bytes: Int = 1_000_000) -> [Int] {
    FlowBound(count: count, bytes: bytes).surplus(of: flows.map { (origin: $0.0, bytes: $0.1) })
  }

  @Test func nothingIsDroppedWithinTheBound() {
    #expect(surplus([("a", 1), ("b", 1)], count: 2) == [])
    #expect(surplus([]) == [])
  }

  @Test func ownerOfMostFlowsLosesTheOldest() {
    #expect(surplus([("a", 1), ("b", 1), ("a", 1), ("a", 1)], count: 3) == [0])
    #expect(surplus([("b", 1), ("a", 1), ("a", 1), ("a", 1), ("a", 1)], count: 3) == [1, 2])
  }

  @Test func oldestOfEqualsIsDropped() {
    #expect(surplus([("a", 1), ("b", 1), ("c", 1)], count: 2) == [0])
    #expect(surplus([("a", 1), ("b", 1), ("a", 1), ("b", 1)], count: 3) == [0])
  }

  @Test func ownerOfMostBytesLosesTheOldest() {
    #expect(surplus([("a", 10), ("b", 500), ("b", 500), ("c", 10)], bytes: 600) == [1])
    #expect(surplus([("a", 10), ("b", 900)], bytes: 600) == [1], "one that is too large alone goes")
  }

  /// The result equals repeatedly dropping the oldest flow of the owner of the most, for as long as a bound is
  /// exceeded.
  @Test(arguments: 0..<50) func resultEqualsDroppingFlowsOneByOne(seed: UInt64) {
    let random = SeededRandom(seed: seed)
    let number = { (below: Int) in Int(random.uniform(below: UInt32(below))) }
    let flows = (0..<200).map { _ in (["a", "b", "c", "d", "e"][min(number(5), number(5))], 1) }
    let count = number(200)
    var left = Array(flows.indices)
    while left.count > count {
      let counts = Dictionary(grouping: left, by: { flows[$0].0 }).mapValues(\.count)
      let most = counts.values.max() ?? 0
      left.remove(at: left.firstIndex { counts[flows[$0].0] == most } ?? 0)
    }
    #expect(surplus(flows, count: count) == flows.indices.filter { !left.contains($0) })
  }
}
