/// Stores leases, which ensure that a task runs on only one gateway of the installation at a time.
package protocol LeaseStore: Sendable {
  /// Acquires a lease if it is free and due.
  /// - Parameter length: the maximum time for which it is held. After that another gateway can take over from a dead
  ///   holder.
  func acquireLease(_ name: String, by holder: String, for length: Duration, at now: Timestamp) async throws(StoreFault)
    -> LeaseAnswer
  /// Extends a lease that is still held.
  /// - Parameter length: the time from now.
  /// - Returns: nil if the lease has expired or another gateway holds it.
  func renewLease(_ lease: Lease, for length: Duration, at now: Timestamp) async throws(StoreFault) -> Lease?
  /// Releases a lease. Has no effect if another gateway holds it now.
  /// - Parameter due: the earliest time at which it can be acquired again.
  func releaseLease(_ lease: Lease, dueAt due: Timestamp, at now: Timestamp) async throws(StoreFault)
}

/// A held lease.
package struct Lease: Sendable, Equatable {
  package let name: String
  /// Increases with each holder. Writes under the lease are refused once another holder has it.
  package let fence: Int64
  package let heldUntil: Timestamp

  package init(name: String, fence: Int64, heldUntil: Timestamp) {
    self.name = name
    self.fence = fence
    self.heldUntil = heldUntil
  }
}

/// The result of asking for a lease.
package enum LeaseAnswer: Sendable, Equatable {
  case held(Lease)
  /// Another gateway holds it or it is not due. Ask again at this time.
  case notBefore(Timestamp)
}
