import Hummingbird
import MoongateCore

/// The outcome of an upgrade.
package enum UpgradeOutcome: Sendable, Equatable {
  /// Another process has taken over.
  case replaced(process: Int32, generation: String)
  /// This process continues; the text says why.
  case kept(String)
}

/// `POST /upgrade`: replaces this process by a new one.
package struct UpgradeCalls: Sendable {
  /// The maximum time for the new process to start serving, in seconds.
  package static let most = Operation.mostSecondsOfUpgrade

  /// Starts the program, and waits until it serves or has failed.
  let upgrade: @Sendable (_ within: Duration) async -> UpgradeOutcome
  let operatorAudit: OperatorAudit
  let suggestion: AdminQuery.Suggestion

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .upgrade) { exchange throws(Refusal) in
        let query = try AdminQuery(exchange, known: ["within", "as"], suggestion: suggestion)
        let seconds = try query.count("within", usual: 60, most: Self.most)
        operatorAudit.record(.upgradeRequested, query, [:], exchange)
        switch await upgrade(.seconds(seconds)) {
        case .replaced(let process, let generation):
          return .json(.members(["process": .number(Int(process)), "generation": .text(generation)]))
        case .kept(let why): return .json(.members(["why": .text(why)]), status: .unprocessableContent)
        }
      }
    ]
  }
}
