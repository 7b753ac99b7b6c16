/// Stores the gateways that serve from one store.
package protocol NodeStore: Sendable {
  /// Reports that a gateway is serving, and deletes gateways that have not reported for long.
  /// - Returns: the gateways that have reported recently, including this one, sorted by ID.
  func recordHeartbeat(_ node: ServingNode) async throws(StoreFault) -> [ServingNode]
  /// The gateways that have reported recently, sorted by ID.
  func nodes(at now: Timestamp) async throws(StoreFault) -> [ServingNode]
  /// Whether the store belongs to the master key with this `KeyRing.fingerprint`.
  func answers(to fingerprint: [UInt8]) async throws(StoreFault) -> Bool
  /// Removes a gateway that is shutting down.
  func leave(_ id: String, at now: Timestamp) async throws(StoreFault)
}

/// A serving gateway as the others see it.
package struct ServingNode: Sendable, Equatable {
  /// How long a gateway counts as serving after its last report.
  package static let livenessTimeout: Duration = .seconds(15)
  /// How long its row is kept after that, so that a clock that was set back does not remove a serving gateway.
  package static let retention: Duration = .seconds(300)

  /// The machine and address, and a part that differs for each process.
  package let id: String
  /// The ID of its active generation.
  package let generation: String
  /// The time of its last report.
  package let seenAt: Timestamp
  /// The names of the master keys that it knows, the current one first.
  package let keys: [String]

  /// The display name: `id` without the part that differs for each process.
  package var name: String { id.split(separator: " ").prefix(2).joined(separator: " ") }

  package init(id: String, generation: String, seenAt: Timestamp, keys: [String] = []) {
    self.id = id
    self.generation = generation
    self.seenAt = seenAt
    self.keys = keys
  }
}
