import Logging

/// Logs failing policy functions: each error at most once a minute, with its count.
///
/// Attack: a function that fails for some requests can be made to fail as often as someone sends them. A line for each
/// would fill the disk and hide everything else.
package final class PolicyFaultLog: Sendable {
  /// Identifies an error. The message may contain facts, so it is ignored if the location is known.
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
  // The default maximum of keys exceeds the number of functions in any folder.
  private let lines = FoldedLines<Place, PolicyFault>()

  package init(logger: Logger, clock: any GatewayClock) {
    self.logger = logger
    self.clock = clock
  }

  /// Reports a fault.
  /// - Parameters:
  ///   - rule: the function's path, such as `routes[2].decide`.
  ///   - decision: the request that was refused because of it; nil if none was.
  package func report(_ fault: PolicyFault, rule: String?, decision: DecisionID?) {
    guard let suppressed = lines.admit(Place(fault), fault, at: clock.now()) else { return }
    var metadata: Logger.Metadata = ["fault": "\(Self.cut(fault))"]
    metadata["decision"] = decision.map { "\($0)" }
    metadata["rule"] = rule.map { "\($0)" }
    if suppressed > 0 { metadata["suppressed"] = "\(suppressed)" }
    logger.error("a policy failed", metadata: metadata)
  }

  /// Logs and resets the counts of errors whose minute is over.
  package func logSuppressed() {
    for (fault, count) in lines.takeOver(at: clock.now()) {
      logger.error("a policy kept failing", metadata: ["fault": "\(Self.cut(fault))", "suppressed": "\(count)"])
    }
  }

  private static func cut(_ fault: PolicyFault) -> String {
    let text = fault.description
    return text.utf8.count <= longest ? text : text.prefix(longest) + "…"
  }
}
