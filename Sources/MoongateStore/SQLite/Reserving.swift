import Foundation
import GRDB
import MoongateCore

extension ReservationRequest {
  /// Charges one try against all limits and the timer, or none: the transaction lets in no other writer.
  ///
  /// Attack: a thousand parallel guesses. Each finds what the ones before it reserved, so exactly as many get a place as
  /// the smallest limit says.
  func reserve(_ db: Database) throws -> ReservationResult {
    var places = [Int](repeating: 0, count: limits.count)
    var refusal: ReservationRefusal?
    var mustWait = false
    // In sorted order, as every store locks them.
    for index in limits.indices.sorted(by: { limits[$0].counter.lexicographicallyPrecedes(limits[$1].counter) }) {
      let limit = limits[index]
      var counter = try CounterRow(limit, at: now, db)
      try counter.tidy(db)
      switch counter.state.judge(limit, at: now) {
      case .open(let place): places[index] = place
      case .wait: mustWait = true
      case .refuse(let reason): refusal = .graver(refusal, ReservationRefusal(reason: reason, limit: limit))
      case .lock(let lock):
        try counter.begin(lock, db)
        refusal = .graver(refusal, ReservationRefusal(reason: .locked(until: lock.until), limit: limit))
      case .disable:
        try counter.disable(db)
        refusal = .graver(refusal, ReservationRefusal(reason: .disabled, limit: limit))
      }
    }
    let running = try timer.flatMap { timer in try TimerRow(timer.key, db) }
    if let timer, let running, running.isClosed(to: timer, at: now) {
      refusal = .graver(refusal, ReservationRefusal(reason: .timer(until: running.resendAt), limit: nil))
    }
    if let refusal { return .refused(refusal) }
    if mustWait { return .filledByPending }
    for limit in limits {
      try db.run(
        "INSERT INTO pending (counter, reservation, at, expires_at) VALUES (?, ?, ?, ?)",
        [Data(limit.counter), Data(id.bytes), now.milliseconds, (limit.window.map { now + $0 } ?? .never).milliseconds])
    }
    return .reserved(places: places, resendAt: try timer?.advance(from: running, by: id, at: now, db))
  }
}

extension Timestamp {
  /// Later than any moment.
  static let never = Timestamp(milliseconds: .max)
}

extension ReservationRefusal {
  /// The graver of two: disabled, then whichever holds longest; of equals the first.
  static func graver(_ first: Self?, _ second: Self) -> Self {
    guard let first else { return second }
    return first.end < second.end ? second : first
  }

  private var end: Timestamp {
    switch reason {
    case .disabled: .never
    case .locked(let until), .full(let until), .timer(let until): until
    }
  }
}
