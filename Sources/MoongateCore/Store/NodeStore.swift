/// The gateways that serve from one store.
package protocol NodeStore: Sendable {
  /// Says that a gateway serves, and forgets those that have not said so for long.
  /// - Returns: those that have said so lately, this one among them, by their ids.
  func beat(_ node: ServingNode) async throws(StoreFault) -> [ServingNode]
  /// The gateways that have said lately that they serve, by their ids.
  func nodes(at now: Timestamp) async throws(StoreFault) -> [ServingNode]
  /// Whether the store is still that of the master key with this `KeyRing.fingerprint`.
  func answers(to fingerprint: [UInt8]) async throws(StoreFault) -> Bool
  /// Forgets a gateway that ends.
  func leave(_ id: String, at now: Timestamp) async throws(StoreFault)
}

/// A gateway that serves, as the others know it.
package struct ServingNode: Sendable, Equatable {
  /// How long it counts after it was last heard of.
  package static let patience: Duration = .seconds(15)
  /// How long its row stays after that: a clock that was set back must not remove who serves.
  package static let memory: Duration = .seconds(300)

  /// Machine and address, and what tells this process from the one before it.
  package let id: String
  /// The id of the generation that is active there.
  package let generation: String
  /// When it was last heard of.
  package let seenAt: Timestamp
  /// The master keys that it knows, by their names, the one with which it makes things first; none where its program
  /// does not tell.
  package let keys: [String]

  /// By which people know it: `id` without what tells processes apart.
  package var name: String { id.split(separator: " ").prefix(2).joined(separator: " ") }

  package init(id: String, generation: String, seenAt: Timestamp, keys: [String] = []) {
    self.id = id
    self.generation = generation
    self.seenAt = seenAt
    self.keys = keys
  }
}
