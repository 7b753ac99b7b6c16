import Testing

@testable import MoongateCore

/// Which flows are dropped when there are too many.
@Suite struct FlowBoundTests {
  private func surplus(_ flows: [(String, Int)], count: Int = 1_000, bytes: Int = 1_000_000) -> [Int] {
    FlowBound(count: count, bytes: bytes).surplus(
      of: flows.map { FlowBound.Member(origin: $0.0, network: $0.0, isOpened: false, bytes: $0.1) })
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

  /// Attack: one network with very many addresses, each with one flow, evicts the flow of everybody else.
  @Test func networkLosesItsOwnFlowsFirst() {
    let flood = (0..<100).map { FlowBound.Member(origin: "flood \($0)", network: "flood", isOpened: false, bytes: 1) }
    let victim = FlowBound.Member(origin: "victim", network: "victim", isOpened: false, bytes: 1)
    let dropped = FlowBound(count: 10, bytes: 1_000).surplus(of: [victim] + flood)
    #expect(dropped.count == 91 && !dropped.contains(0))
    #expect(dropped == Array(1...91), "and of equals the oldest")
  }

  /// Within a network, the address with the most flows loses them.
  @Test func neighbourOfAFloodKeepsItsFlow() {
    let flood = (0..<50).map { _ in FlowBound.Member(origin: "flood", network: "net", isOpened: false, bytes: 1) }
    let neighbour = FlowBound.Member(origin: "neighbour", network: "net", isOpened: false, bytes: 1)
    let dropped = FlowBound(count: 10, bytes: 1_000).surplus(of: [neighbour] + flood)
    #expect(dropped.count == 41 && !dropped.contains(0))
  }

  /// Attack: calls of the API from very many networks evict the flows of people who are typing.
  @Test func flowsThatABrowserHasOpenedHaveAShare() {
    func flow(_ number: Int, isOpened: Bool) -> FlowBound.Member<String> {
      FlowBound.Member(origin: "\(isOpened) \(number)", network: "\(isOpened) \(number)", isOpened: isOpened, bytes: 1)
    }
    let opened = (0..<5).map { flow($0, isOpened: true) }
    let calls = (0..<100).map { flow($0, isOpened: false) }
    let bound = FlowBound(count: 10, bytes: 1_000)
    #expect(bound.surplus(of: opened + calls) == Array(5..<100), "the opened ones stay")
    // Neither can those that a browser has opened take everything.
    let many = (0..<100).map { flow($0, isOpened: true) }
    let left = Set(0..<105).subtracting(bound.surplus(of: (0..<5).map { flow($0, isOpened: false) } + many))
    #expect(left.count == 10 && left.count(where: { $0 < 5 }) == 5)
  }

  @Test func originNamesNetworkAddressAndBrowser() throws {
    let keys = try KeyRing(master: [UInt8](repeating: 7, count: 32))
    func member(_ last: [UInt8], isOpened: Bool = false) throws -> FlowBound.Member<String> {
      let prefix: [UInt8] = [0x20, 0x01, 0x0d, 0xb8, 0, 1]
      let bytes = prefix + last + [UInt8](repeating: 0, count: 8)
      let text = FlowOrigin(try #require(ClientAddress(bytes: bytes)), keys).text
      return FlowOrigin.member(isOpened ? FlowOrigin.opened(text) : text, bytes: 5)
    }
    let (one, other) = (try member([0, 1]), try member([0, 2]))
    #expect(one.network == other.network && one.origin != other.origin && !one.isOpened && one.bytes == 5)
    #expect(try member([0, 1], isOpened: true).isOpened)
    #expect(try member([0, 1], isOpened: true).network == one.network)
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
