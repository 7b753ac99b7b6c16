import MoongateCore

/// So many messages are on their way at once, so many more wait for that, and those beyond are refused.
///
/// Attack: a flood of sign-ins while the mail server is slow, which would otherwise be kept in memory.
struct SendQueue<Waiter: Sendable>: Sendable {
  enum Entry: Equatable, Sendable { case goes, waits, full }

  /// On their way.
  let most: Int
  /// In the line.
  let longest: Int
  /// How long one waits at most: a person looks at a page meanwhile.
  let patience: Duration
  private(set) var atWork = 0
  private var line: [(waiter: Waiter, until: Timestamp)] = []

  init(most: Int, longest: Int = 500, patience: Duration = .seconds(3)) {
    self.most = most
    self.longest = longest
    self.patience = patience
  }

  var waiting: Int { line.count }

  /// One that goes must `leave`; one that waits is called by somebody's `leave`.
  mutating func enter(_ waiter: Waiter, at now: Timestamp) -> Entry {
    if atWork < most {
      atWork += 1
      return .goes
    }
    guard line.count < longest else { return .full }
    line.append((waiter, now + patience))
    return .waits
  }

  /// - Returns: whose turn it is, and those who have waited too long.
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
