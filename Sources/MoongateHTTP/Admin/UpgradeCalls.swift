import Hummingbird
import MoongateCore

/// What became of an upgrade.
package enum UpgradeOutcome: Sendable, Equatable {
  /// Another process serves in this one's place.
  case replaced(process: Int32, generation: String)
  /// This process goes on; a sentence that says why.
  case kept(String)
}

/// `POST /upgrade`: the program is started again in this process's place.
package struct UpgradeCalls: Sendable {
  /// The longest that the new process may take until it serves, in seconds.
  package static let most = 600

  /// Starts the program, and waits until it serves or has failed.
  let upgrade: @Sendable (_ within: Duration) async -> UpgradeOutcome
  let acts: OperatorActs
  let suggestion: AdminQuery.Suggestion

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .post, "/upgrade", .upgrade) { exchange throws(Refusal) in
        let query = try AdminQuery(exchange, known: ["within", "as"], suggestion: suggestion)
        let seconds = try query.count("within", usual: 60, most: Self.most)
        acts.note(.upgradeRequested, query, [:], exchange)
        switch await upgrade(.seconds(seconds)) {
        case .replaced(let process, let generation):
          return .json(.members(["process": .number(Int(process)), "generation": .text(generation)]))
        case .kept(let why): return .json(.members(["why": .text(why)]), status: .unprocessableContent)
        }
      }
    ]
  }
}
