import Logging

/// Tells the operator of policy functions that fail: each error at most once a minute, with how often it happened.
///
/// Attack: a function that fails for some requests fails for as many as somebody sends. A line for each would fill the
/// disk and hide everything else.
package final class PolicyFaultLog: Sendable {
  /// One error: what a function is told may be part of its message, so the message does not count where the line is
  /// known.
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

  private static let longest = 500

  private let logger: Logger
  private let clock: any GatewayClock
  // More places than a folder has functions.
  private let lines = FoldedLines<Place, PolicyFault>()

  package init(logger: Logger, clock: any GatewayClock) {
    self.logger = logger
    self.clock = clock
  }

  /// - Parameters:
  ///   - rule: the function's path: `routes[2].decide`.
  ///   - decision: of the request that was refused for it; nil where none was.
  package func report(_ fault: PolicyFault, rule: String?, decision: DecisionID?) {
    guard let unsaid = lines.admit(Place(fault), fault, at: clock.now()) else { return }
    var metadata: Logger.Metadata = ["fault": "\(Self.cut(fault))"]
    metadata["decision"] = decision.map { "\($0)" }
    metadata["rule"] = rule.map { "\($0)" }
    if unsaid > 0 { metadata["suppressed"] = "\(unsaid)" }
    logger.error("a policy failed", metadata: metadata)
  }

  /// Tells how often errors happened whose minute is over, and forgets them.
  package func tellSuppressed() {
    for (fault, count) in lines.takeOver(at: clock.now()) {
      logger.error("a policy went on failing", metadata: ["fault": "\(Self.cut(fault))", "suppressed": "\(count)"])
    }
  }

  private static func cut(_ fault: PolicyFault) -> String {
    let text = fault.description
    return text.utf8.count <= longest ? text : text.prefix(longest) + "…"
  }
}
