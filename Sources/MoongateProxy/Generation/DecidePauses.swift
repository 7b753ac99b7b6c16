import NIOCore

/// The requesters for whom the `decide` function of a route is paused on one event loop, because it exceeded its budget
/// for their requests again and again.
///
/// `decide` runs on the event loop, so each run that is stopped delays all its connections by a fraction of a
/// millisecond.
///
/// Attack: whether a function is stopped can depend on the request, for example on a long path that a pattern searches
/// again and again. A pause for everybody would let one user close the route for all others.
struct DecidePauses {
  private struct Record {
    /// Stopped runs in a row.
    var stops: Int
    var until: NIODeadline
  }

  /// How many runs in a row may be stopped.
  private static let tolerated = 5
  private static let length: TimeAmount = .seconds(10)
  /// A new requester beyond this number makes all others start again.
  private static let mostRequesters = 1_024

  private var records: [String: Record] = [:]

  /// - Parameter requester: an account or an access token.
  func isPaused(_ requester: String, at now: NIODeadline) -> Bool {
    guard !records.isEmpty, let record = records[requester] else { return false }
    return record.stops >= Self.tolerated && now < record.until
  }

  /// The function was stopped for a request.
  mutating func stopped(for requester: String, at now: NIODeadline) {
    if records[requester] == nil, records.count >= Self.mostRequesters { records = [:] }
    records[requester, default: Record(stops: 0, until: now)].stops += 1
    records[requester]?.until = now + Self.length
  }

  /// The function returned within its budget.
  mutating func returned(for requester: String) {
    if !records.isEmpty { records[requester] = nil }
  }
}
