import MoongateSDK

/// A limit with its numbers resolved for one attempt, and its counter.
package struct ResolvedLimit: Sendable, Hashable {
  package let provider: ProviderName
  /// The limit's name in the policy.
  package let name: String
  package let key: LimitKey
  /// The key of the counter's row: a keyed hash of provider, limit and counted value.
  package let counter: [UInt8]
  package let max: Int
  /// nil only for consecutive failures.
  package let window: Duration?
  package let counts: LimitCounts
  package let lock: [Duration]
  package let disables: Bool

  /// More than five parameters: one for each field.
  package init(
    provider: ProviderName, name: String, key: LimitKey, counter: [UInt8], max: Int, window: Duration?,
    counts: LimitCounts = .all, lock: [Duration] = [], disables: Bool = false
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

  /// Whether reaching this limit disables a personal credential. A policy that conceals must not reveal that.
  package var disablesPerson: Bool { disables && key.isPersonal }
}

/// The resend timer of one provider and identifier, across all flows.
package struct ResendTimer: Sendable, Hashable {
  /// The key of the timer's row: a keyed hash of provider and identifier.
  package let key: [UInt8]
  /// The delays after the first send of a sequence, the second, and so on; the last one repeats. Empty: no timer.
  package let intervals: [Duration]
  /// When the current code expired, if it has. A send is then allowed although the timer is running, unless one was
  /// made since. (Of twenty parallel resends of an expired code, one is sent.)
  package let expiredAt: Timestamp?

  /// A sequence of sends restarts after this time without a send.
  package static let sequenceEnd: Duration = .seconds(15 * 60)

  package init(key: [UInt8], intervals: [Duration], expiredAt: Timestamp?) {
    self.key = key
    self.intervals = intervals
    self.expiredAt = expiredAt
  }

  /// The delay after the send with this index in its sequence, from 0.
  package func interval(after sequence: Int) -> Duration? {
    intervals.isEmpty ? nil : intervals[min(sequence, intervals.count - 1)]
  }
}

/// Identifies a reservation.
package struct ReservationID: Hashable, Sendable, Codable {
  /// 16 bytes.
  package let bytes: [UInt8]

  package init(bytes: [UInt8]) { self.bytes = bytes }

  package init(from random: any RandomSource) { bytes = random.bytes(16) }
}

/// The limit that refused, and why.
package struct ReservationRefusal: Sendable, Equatable {
  /// Why the limit refused.
  package enum Reason: Sendable, Equatable {
    case locked(until: Timestamp)
    /// Full, without a lock. The oldest event leaves the window at this time.
    case full(until: Timestamp)
    case disabled
    case timer(until: Timestamp)

    /// When an attempt is possible again; nil: never by itself.
    package var end: Timestamp? {
      switch self {
      case .disabled: nil
      case .locked(let until), .full(let until), .timer(let until): until
      }
    }
  }

  package let reason: Reason
  /// nil for the timer.
  package let limit: ResolvedLimit?

  package init(reason: Reason, limit: ResolvedLimit?) {
    self.reason = reason
    self.limit = limit
  }
}

/// The outcome of a reservation.
package struct Settlement: Sendable {
  /// What the reserved act led to.
  package enum Outcome: Sendable {
    /// The message was sent, or the attempt was right.
    case success
    /// The attempt was wrong.
    case failure
    /// As if the reservation had never been made.
    case refund
    /// The delivery failed. The user is not charged and no timer runs, but limits per address and global limits keep
    /// the event, so that failing deliveries are not free.
    case refundPerson
  }

  package let reservation: ReservationID
  package let outcome: Outcome
  /// The limits that the reservation was made against.
  package let limits: [ResolvedLimit]
  package let timer: ResendTimer?
  package let now: Timestamp
  /// For a failure: what is stored about it at some of the limits.
  package let attempts: [FailedAttempt]

  /// More than five parameters: one for each field.
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
