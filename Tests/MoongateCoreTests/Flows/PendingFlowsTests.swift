import MoongateTesting
import Testing

@testable import MoongateCore

/// Flows that were created but never begun are kept in memory, within bounds.
@Suite struct PendingFlowsTests {
  private let now = ManualClock.start

  private func record(_ number: Int) -> FlowRecord {
    FlowRecord(
      id: TokenHash(of: "\(number)".utf8), definition: .test("login", account: .existing, steps: []), codes: [:],
      createdAt: now, returnTo: nil,
      browser: nil, network: [], account: nil)
  }

  @Test func floodOfFlowsDropsTheSendersOwnFlows() {
    let flows = PendingFlows(mostPerAddress: 10)
    flows.put(record(-1), from: [1], at: now)
    for number in 0..<100_000 { flows.put(record(number), from: [2], at: now) }
    #expect(flows.find(record(-1).id) != nil)
    #expect((0..<100_000).filter { flows.find(record($0).id) != nil }.count == 10)
  }

  @Test func manyAddressesStayBounded() {
    let flows = PendingFlows(mostPerAddress: 10)
    for number in 0..<20_000 {
      flows.put(
        record(number), from: [UInt8(number >> 8), UInt8(number & 255)], at: now, within: FlowBound(count: 1_000))
    }
    #expect((0..<20_000).filter { flows.find(record($0).id) != nil }.count <= 1_000)
    #expect(flows.find(record(19_999).id) != nil)
  }

  /// Attack: one address, below its own bound, creates flows without end until everybody's flows are evicted.
  @Test func floodFromOneAddressEvictsItsOwnFlows() {
    let flows = PendingFlows(mostPerAddress: 1_000)
    let bound = FlowBound(count: 100)
    for number in 0..<60 { flows.put(record(number), from: [UInt8(number)], at: now, within: bound) }
    for number in 1_000..<2_000 { flows.put(record(number), from: [255], at: now, within: bound) }
    #expect((0..<60).allSatisfy { flows.find(record($0).id) != nil })
    #expect((1_000..<2_000).filter { flows.find(record($0).id) != nil } == Array(1_960..<2_000))
  }

  /// Attack: few flows, each with a `return_to` of the maximum length.
  @Test func bytesAreBounded() {
    let flows = PendingFlows()
    let bound = FlowBound(count: 900, bytes: 100_000)
    for number in 0..<500 { flows.put(record(number), from: [UInt8(number & 255)], at: now, within: bound) }
    let left = (0..<500).filter { flows.find(record($0).id) != nil }.count
    #expect(left > 30 && left < 40)
  }

  /// Attack: flows with short texts, each of which takes more memory than it counts, until the process is killed.
  @Test func aFlowCountsWhatItTakes() {
    let flows = PendingFlows()
    let bound = FlowBound(count: 900, bytes: 256_000)
    for number in 0..<500 { flows.put(record(number), from: [UInt8(number & 255)], at: now, within: bound) }
    #expect((0..<500).count(where: { flows.find(record($0).id) != nil }) <= 100, "2,560 bytes for each at least")
  }

  @Test func removedFlowIsNotFound() {
    let flows = PendingFlows()
    flows.put(record(1), from: [1], at: now)
    flows.remove(record(1).id)
    #expect(flows.find(record(1).id) == nil)
  }

  // MARK: sharing (`moongate upgrade`)

  @Test func sharingStoresAllPendingFlows() async {
    let flows = PendingFlows()
    for number in 0..<500 { flows.put(record(number), from: [1], at: now) }
    var stored: [TokenHash] = []
    await flows.share { stored += $0.map(\.id) }
    #expect(Set(stored) == Set((0..<500).map { record($0).id }) && stored.count == 500)
    #expect((0..<500).allSatisfy { flows.find(record($0).id) == nil })
    #expect(!flows.put(record(501), from: [1], at: now), "the caller stores it")
    flows.stopSharing()
    #expect(flows.put(record(501), from: [1], at: now))
  }

  /// Attack: a request that started with a flow in memory overwrites what another process has stored meanwhile, and its
  /// attempts count twice.
  @Test func flowInUseIsStoredAfterItsRequest() async {
    let flows = PendingFlows()
    for number in 0..<2 { flows.put(record(number), from: [1], at: now) }
    await flows.enter(record(0).id)
    var stored: [TokenHash] = []
    await flows.share { stored += $0.map(\.id) }
    #expect(stored == [record(1).id])
    #expect(flows.find(record(0).id) != nil, "for the request that works with it")
    #expect(flows.leave(record(0).id)?.id == record(0).id, "to be stored now")
    await flows.enter(record(1).id)
    #expect(flows.leave(record(1).id) == nil)
  }

  @Test func requestsWaitWhileFlowsAreStored() async {
    let flows = PendingFlows()
    flows.put(record(0), from: [1], at: now)
    var request: Task<Bool, Never>?
    let waiting = record(0).id
    await flows.share { _ in
      request = Task {
        await flows.enter(waiting)
        return flows.find(waiting) == nil
      }
      await Task.yield()
    }
    #expect(await request?.value == true, "it finds the flow in the store, and not here too")
  }

  @Test func unstorableFlowStaysInMemory() async {
    let flows = PendingFlows()
    flows.put(record(0), from: [1], at: now)
    await #expect(throws: StoreFault.self) { try await flows.share { _ in throw StoreFault("full") } }
    #expect(flows.find(record(0).id) != nil)
    #expect(flows.put(record(1), from: [1], at: now))
  }

  @Test func severalGatewaysShareAlways() {
    let flows = PendingFlows(isShared: true)
    #expect(!flows.put(record(0), from: [1], at: now))
    flows.stopSharing()
    #expect(!flows.put(record(0), from: [1], at: now))
  }
}
