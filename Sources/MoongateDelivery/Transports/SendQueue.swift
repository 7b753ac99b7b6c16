import MoongateCore

/// Limits concurrent and waiting messages. Further messages are refused.
///
/// Attack: many sign-ins while the mail server is slow would fill the memory.
struct SendQueue<Waiter: Sendable>: Sendable {
  enum Entry: Equatable, Sendable { case goes, waits, full }

  /// The maximum number of concurrent messages.
  let most: Int
  /// The maximum number of waiting messages.
  let longest: Int
  /// The maximum waiting time. A user is waiting for the page.
  let timeLimit: Duration
  private(set) var atWork = 0
  private var line: [(waiter: Waiter, until: Timestamp)] = []

  init(most: Int, longest: Int = 500, timeLimit: Duration = .seconds(3)) {
    self.most = most
    self.longest = longest
    self.timeLimit = timeLimit
  }

  var waiting: Int { line.count }

  /// Enters the queue. After `goes`, the caller must call `leave`; after `waits`, another caller's `leave` returns the
  /// waiter.
  mutating func enter(_ waiter: Waiter, at now: Timestamp) -> Entry {
    if atWork < most {
      atWork += 1
      return .goes
    }
    guard line.count < longest else { return .full }
    line.append((waiter, now + timeLimit))
    return .waits
  }

  /// - Returns: the next waiter, and those that have waited too long.
  mutating func leave(at now: Timestamp) -> (next: Waiter?, late: [Waiter]) {
    let late = line.prefix { now >= $0.until }.map(\.waiter)
    line.removeFirst(late.count)
    guard !line.isEmpty else {
      atWork -= 1
      return (nil, late)
    }
    return (line.removeFirst().waiter, late)
  }
}
