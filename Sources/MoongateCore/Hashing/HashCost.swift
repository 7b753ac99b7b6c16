/// The cost of one Argon2id hash (RFC 9106 section 3.1).
package struct HashCost: Sendable, Hashable {
  /// In KiB.
  package let memory: UInt32
  package let passes: UInt32
  package let lanes: UInt32

  package init(memory: UInt32, passes: UInt32, lanes: UInt32) {
    self.memory = memory
    self.passes = passes
    self.lanes = lanes
  }

  /// 19 MiB, 2 passes, 1 lane: the minimum of OWASP's Password Storage Cheat Sheet for Argon2id.
  package static let shipped = HashCost(memory: 19_456, passes: 2, lanes: 1)

  /// The minimum that Argon2 accepts, for tests, policy cases and the simulator. It protects nothing.
  package static let cheap = HashCost(memory: 8, passes: 1, lanes: 1)
}
