/// What runs on one gateway of the installation at a time.
package protocol LeaseStore: Sendable {
  /// Takes a lease that nobody holds, if it is due.
  /// - Parameter length: how long it is held at most. A holder that dies is replaced after it.
  func acquireLease(_ name: String, by holder: String, for length: Duration, at now: Timestamp) async throws(StoreFault)
    -> LeaseAnswer
  /// Holds a lease for longer, if it is still held.
  /// - Parameter length: from now on.
  /// - Returns: nil where the lease has ended, or somebody else has it.
  func renewLease(_ lease: Lease, for length: Duration, at now: Timestamp) async throws(StoreFault) -> Lease?
  /// Gives a lease back. Does nothing if somebody else holds it meanwhile.
  /// - Parameter due: nobody takes it before.
  func releaseLease(_ lease: Lease, dueAt due: Timestamp, at now: Timestamp) async throws(StoreFault)
}

/// A lease that is held.
package struct Lease: Sendable, Equatable {
  package let name: String
  /// Grows with each holder. What is written under the lease is refused once another one holds it.
  package let fence: Int64
  package let heldUntil: Timestamp

  package init(name: String, fence: Int64, heldUntil: Timestamp) {
    self.name = name
    self.fence = fence
    self.heldUntil = heldUntil
  }
}

/// What came of asking for a lease.
package enum LeaseAnswer: Sendable, Equatable {
  case held(Lease)
  /// Somebody else holds it, or it is not due: ask again then.
  case notBefore(Timestamp)
}
