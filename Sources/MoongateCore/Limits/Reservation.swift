import MoongateSDK

/// One limit with its numbers settled for this try, and the counter that it looks at.
package struct ResolvedLimit: Sendable, Hashable {
  package let provider: ProviderName
  /// The limit's name in the policy.
  package let name: String
  package let key: LimitKey
  /// The counter's row: a keyed hash of provider, limit and what is counted by.
  package let counter: [UInt8]
  package let max: Int
  /// nil only with consecutive failures.
  package let window: Duration?
  package let counts: LimitCounts
  package let lock: [Duration]
  package let disables: Bool

  package init(
    provider: ProviderName, name: String, key: LimitKey, counter: [UInt8], max: Int, window: Duration?,
    counts: LimitCounts, lock: [Duration],
    disables: Bool
  ) {
    self.provider = provider
    self.name = name
    self.key = key
    self.counter = counter
    self.max = max
    self.window = window
    self.counts = counts
    self.lock = lock
    self.disables = disables
  }
}

/// The resend timer of one provider and identifier, over all flows.
package struct ResendTimer: Sendable, Hashable {
  /// The timer's row: a keyed hash of provider and identifier.
  package let key: [UInt8]
  /// How long after the first send of a sequence, the second, …; the last repeats. Empty: no timer runs.
  package let intervals: [Duration]
  /// When the code at hand expired, where it has: a send is open although the timer runs, unless one was made since.
  /// (Of twenty parallel resends of an expired code one goes out.)
  package let expiredAt: Timestamp?

  /// A sequence of sends starts anew after this time without one (exact.md, "Sending and codes").
  package static let sequenceEnd: Duration = .seconds(15 * 60)

  package init(key: [UInt8], intervals: [Duration], expiredAt: Timestamp?) {
    self.key = key
    self.intervals = intervals
    self.expiredAt = expiredAt
  }

  /// How long to wait after the send with this number, from 0, in its sequence.
  package func interval(after sequence: Int) -> Duration? {
    intervals.isEmpty ? nil : intervals[min(sequence, intervals.count - 1)]
  }
}

/// Asks for one try, or one send, against all limits at once.
package struct ReservationRequest: Sendable {
  /// Names the reservation: 128 random bits.
  package let id: ReservationID
  package let now: Timestamp
  package let limits: [ResolvedLimit]
  /// For sends.
  package let timer: ResendTimer?
  /// Whether the event has no outcome: it is counted in the same transaction and is never settled.
  package let isSettled: Bool

  package init(id: ReservationID, now: Timestamp, limits: [ResolvedLimit], timer: ResendTimer?, isSettled: Bool = false)
  {
    self.id = id
    self.now = now
    self.limits = limits
    self.timer = timer
    self.isSettled = isSettled
  }
}

/// Names a reservation.
package struct ReservationID: Hashable, Sendable, Codable {
  /// 16 bytes.
  package let bytes: [UInt8]

  package init(bytes: [UInt8]) { self.bytes = bytes }

  package init(from random: any RandomSource) { bytes = random.bytes(16) }
}

/// What came of asking.
package enum ReservationResult: Sendable, Equatable {
  /// Charged against all. Places are in the order of the request's limits; the first try in a window has place 1.
  case reserved(places: [Int], resendAt: Timestamp?)
  /// Nothing was charged.
  case refused(ReservationRefusal)
  /// Nothing was charged: a limit is full, but of tries that are still being judged. Ask again when one is settled.
  case filledByPending
}

/// Which limit refused.
package struct ReservationRefusal: Sendable, Equatable {
  package enum Reason: Sendable, Equatable {
    case locked(until: Timestamp)
    /// No lock; the oldest event falls out then.
    case full(until: Timestamp)
    case disabled
    case timer(until: Timestamp)
  }

  package let reason: Reason
  /// nil for the timer.
  package let limit: ResolvedLimit?

  package init(reason: Reason, limit: ResolvedLimit?) {
    self.reason = reason
    self.limit = limit
  }
}

/// How a reservation ended.
package struct Settlement: Sendable {
  package enum Outcome: Sendable {
    /// The send went out, or the try was right.
    case success
    /// The try was wrong.
    case failure
    /// As if it had never been.
    case refund
    /// A delivery failed: nothing is charged to the person and no timer runs, but limits per address and global ones
    /// keep the event, or failing deliveries would be free load.
    case refundPerson
  }

  package let reservation: ReservationID
  package let outcome: Outcome
  /// The limits that it was made against.
  package let limits: [ResolvedLimit]
  package let timer: ResendTimer?
  package let now: Timestamp
  /// Of a failure: what is remembered of it at some of the limits.
  package let attempts: [FailedAttempt]

  package init(
    reservation: ReservationID, outcome: Outcome, limits: [ResolvedLimit], timer: ResendTimer?, now: Timestamp,
    attempts: [FailedAttempt] = []
  ) {
    self.reservation = reservation
    self.outcome = outcome
    self.limits = limits
    self.timer = timer
    self.now = now
    self.attempts = attempts
  }
}
