import Logging
import Synchronization

/// Tells the operator of policy functions that fail: each error at most once a minute, with how often it happened.
///
/// Attack: a function that fails for some requests fails for as many as somebody sends. A line for each would fill the disk and hide
/// everything else.
package final class PolicyFaultLog: Sendable {
  /// One error: what a function is told may be part of its message, so the message does not count where the line is known.
  private struct Place: Hashable {
    let location: SourceLocation?
    let kind: PolicyFault.Kind
    let message: String

    init(_ fault: PolicyFault) {
      location = fault.location
      kind = fault.kind
      message = fault.location == nil ? fault.message : ""
    }
  }

  private struct Window {
    let until: Timestamp
    /// The last error that was not told, and how many of them there were.
    var last: PolicyFault?
    var count = 0
  }

  private static let window: Duration = .seconds(60)
  /// More places than a folder has functions.
  private static let most = 1_000
  private static let longest = 500

  private let logger: Logger
  private let clock: any GatewayClock
  private let windows = Mutex<[Place: Window]>([:])

  package init(logger: Logger, clock: any GatewayClock) {
    self.logger = logger
    self.clock = clock
  }

  /// - Parameters:
  ///   - rule: the function's path: `routes[2].decide`.
  ///   - decision: of the request that was refused for it; nil where none was.
  package func report(_ fault: PolicyFault, rule: String?, decision: DecisionID?) {
    let now = clock.now()
    let place = Place(fault)
    let unsaid: Int? = windows.withLock { windows in
      if var open = windows[place], now < open.until {
        open.last = fault
        open.count += 1
        windows[place] = open
        return nil
      }
      guard windows.count < Self.most || windows[place] != nil else { return nil }
      let unsaid = windows[place]?.count ?? 0
      windows[place] = Window(until: now + Self.window)
      return unsaid
    }
    guard let unsaid else { return }
    var metadata: Logger.Metadata = ["fault": "\(Self.cut(fault))"]
    metadata["decision"] = decision.map { "\($0)" }
    metadata["rule"] = rule.map { "\($0)" }
    if unsaid > 0 { metadata["suppressed"] = "\(unsaid)" }
    logger.error("a policy failed", metadata: metadata)
  }

  /// Tells how often errors happened whose minute is over, and forgets them.
  package func tellSuppressed() {
    let now = clock.now()
    let over = windows.withLock { windows in
      let over = windows.filter { $0.value.until <= now }
      for place in over.keys { windows[place] = nil }
      return over.values.compactMap { window in window.last.map { ($0, window.count) } }
    }
    for (fault, count) in over { logger.error("a policy went on failing", metadata: ["fault": "\(Self.cut(fault))", "suppressed": "\(count)"]) }
  }

  /// Does so until the task is cancelled.
  package func run() async {
    while !Task.isCancelled {
      tellSuppressed()
      try? await Task.sleep(for: .seconds(5))
    }
  }

  private static func cut(_ fault: PolicyFault) -> String {
    let text = fault.description
    return text.utf8.count <= longest ? text : text.prefix(longest) + "…"
  }
}
