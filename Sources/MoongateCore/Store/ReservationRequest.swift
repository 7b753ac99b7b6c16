import MoongateSDK

/// Requests one attempt, or one send, against all limits at once.
package struct ReservationRequest: Sendable {
  /// Identifies the reservation: 128 random bits.
  package let id: ReservationID
  package let now: Timestamp
  package let limits: [ResolvedLimit]
  /// For sends only.
  package let timer: ResendTimer?
  /// Whether the event has no outcome. It is then counted in the same transaction and never settled.
  package let countsAtOnce: Bool
  /// Limits that are not charged. Nothing is charged while one of them is locked or has disabled what it counts. Their
  /// counters are read, not locked against other transactions.
  package let barring: [ResolvedLimit]
  /// Whether a barring limit that has disabled a personal credential is ignored.
  package let hidesDisabled: Bool
  /// The flow that the attempt is made in, if it was not read from the store before. Nothing is charged if another
  /// version is stored.
  package let flow: FlowVersion?
  /// The account to read in the same transaction, once the attempt's turn has come.
  package let account: String?

  /// More than five parameters: one for each field.
  package init(
    id: ReservationID, now: Timestamp, limits: [ResolvedLimit], timer: ResendTimer?, countsAtOnce: Bool = false,
    unlessLocked barring: [ResolvedLimit] = [], hidesDisabled: Bool = false, in flow: FlowVersion? = nil,
    reading account: String? = nil
  ) {
    self.id = id
    self.now = now
    self.limits = limits
    self.timer = timer
    self.countsAtOnce = countsAtOnce
    self.barring = barring
    self.hidesDisabled = hidesDisabled
    self.flow = flow
    self.account = account
  }
}

/// A version of a flow.
package struct FlowVersion: Sendable, Equatable {
  package let id: TokenHash
  package let number: Int

  package init(_ record: FlowRecord) { (id, number) = (record.id, record.version) }
}

/// The result of a reservation request.
package enum ReservationResult: Sendable, Equatable {
  /// Charged against all limits. Places are in the order of the request's limits; the first attempt in a window has
  /// place 1. The account is the one that was to be read; nil if it does not exist. `isDisabled` tells whether a
  /// barring limit that has disabled a personal credential was ignored.
  case reserved(places: [Int], account: Account? = nil, isDisabled: Bool = false)
  /// Nothing was charged: a barring limit is locked or has disabled what it counts.
  case barred
  /// Nothing was charged: the flow is gone, or stored in another version.
  case flowChanged
  /// Nothing was charged.
  case refused(ReservationRefusal)
  /// Nothing was charged: a limit is full, but only because of attempts that are still being judged. Ask again once one
  /// of them is settled.
  case filledByPending
}
