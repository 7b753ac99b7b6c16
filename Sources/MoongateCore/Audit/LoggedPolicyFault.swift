import Logging

/// The log entry of a failing policy function.
package struct LoggedPolicyFault: FoldedEntry {
  /// Identifies an error. The message may contain facts, so it is ignored if the location is known.
  package struct Key: Hashable, Sendable {
    let location: SourceLocation?
    let kind: PolicyFault.Kind
    let message: String
  }

  private static let longest = 500

  private let fault: PolicyFault

  package init(_ fault: PolicyFault) { self.fault = fault }

  package var key: Key {
    Key(location: fault.location, kind: fault.kind, message: fault.location == nil ? fault.message : "")
  }

  package var level: Logger.Level { .error }
  package var message: Logger.Message { "a policy failed" }
  package var messageOfMore: Logger.Message { "a policy kept failing" }

  package var metadata: Logger.Metadata {
    let text = fault.description
    return ["fault": .string(text.utf8.count <= Self.longest ? text : text.prefix(Self.longest) + "…")]
  }
}

// The default maximum of keys exceeds the number of functions in any folder.
extension FoldedLog<LoggedPolicyFault> {
  /// Reports a fault.
  /// - Parameters:
  ///   - rule: the function's path, such as `routes[2].decide`.
  ///   - decision: the request that was refused because of it; nil if none was.
  package func report(_ fault: PolicyFault, rule: String?, decision: DecisionID?) {
    var details: Logger.Metadata = [:]
    details["decision"] = decision.map { "\($0)" }
    details["rule"] = rule.map { "\($0)" }
    report(LoggedPolicyFault(fault), details)
  }
}
