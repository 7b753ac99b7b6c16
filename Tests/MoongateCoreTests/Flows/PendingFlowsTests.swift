import MoongateTesting
import Testing

@testable import MoongateCore

/// Flows that were never begun are bounded in memory.
@Suite struct PendingFlowsTests {
  private let now = ManualClock.start

  private func record(_ number: Int) -> FlowRecord {
    FlowRecord(
      id: TokenHash(of: "\(number)".utf8), definition: .test("login", account: .existing, steps: []), codes: [:], createdAt: now, returnTo: nil,
      browser: nil, network: [], account: nil)
  }

  @Test func whoCreatesWithoutEndDropsTheirOwn() {
    let flows = PendingFlows(most: 1_000, mostPerAddress: 10)
    flows.put(record(-1), from: [1], at: now)
    for number in 0..<100_000 { flows.put(record(number), from: [2], at: now) }
    #expect(flows.find(record(-1).id) != nil)
    #expect((0..<100_000).filter { flows.find(record($0).id) != nil }.count == 10)
  }

  @Test func manyAddressesStayBounded() {
    let flows = PendingFlows(most: 1_000, mostPerAddress: 10)
    for number in 0..<20_000 { flows.put(record(number), from: [UInt8(number >> 8), UInt8(number & 255)], at: now) }
    #expect((0..<20_000).filter { flows.find(record($0).id) != nil }.count <= 1_000)
    #expect(flows.find(record(19_999).id) != nil)
  }

  @Test func aFlowThatWasTakenOutIsGone() {
    let flows = PendingFlows()
    flows.put(record(1), from: [1], at: now)
    flows.remove(record(1).id)
    #expect(flows.find(record(1).id) == nil)
  }
}
