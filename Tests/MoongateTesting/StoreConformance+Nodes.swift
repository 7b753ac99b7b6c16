import MoongateCore
import Testing

// The gateways that serve from the store.

extension StoreConformance {
  static let nodes: [StoreConformance] = [
    StoreConformance("serving gateways are listed, and stopped ones are not") {
      bench async throws in
      let start = bench.now
      let one = ServingNode(id: "one", generation: "a", seenAt: start)
      #expect(try await bench.store.recordHeartbeat(one) == [one])
      let two = ServingNode(id: "two", generation: "b", seenAt: start + .seconds(1), keys: ["0a", "0b"])
      #expect(try await bench.store.recordHeartbeat(two) == [one, two])
      let again = ServingNode(id: "one", generation: "b", seenAt: start + .seconds(3), keys: ["0b"])
      #expect(try await bench.store.recordHeartbeat(again) == [again, two])
      // A gateway that was killed counts until it has not reported for long enough.
      let end = two.seenAt + ServingNode.livenessTimeout
      #expect(try await bench.store.nodes(at: end - .milliseconds(1)) == [again, two])
      #expect(try await bench.store.nodes(at: end) == [again])
      let third = ServingNode(id: "one", generation: "b", seenAt: end + ServingNode.retention)
      #expect(try await bench.store.recordHeartbeat(third) == [third])
      #expect(try await bench.store.nodes(at: start) == [third], "the row of the other is deleted")
      // A gateway that shuts down removes itself.
      try await bench.store.leave("one", at: third.seenAt)
      #expect(try await bench.store.nodes(at: third.seenAt).isEmpty)
    }
  ]
}
