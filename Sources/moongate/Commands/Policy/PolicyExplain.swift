import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateProgram
import MoongateSDK
import MoongateStore

/// `moongate policy explain ID`: explains why a request was refused.
struct Explain: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract:
      "Explain a decision: its rule, file and line, the facts that it read, and the counters before and after.",
    discussion: """
      Every refusal contains the id of its decision (decision_id). The command asks the admin listener of the running gateway; if none runs, it reads the store. \
      Exit status: 1 if the decision is unknown or no longer kept. The gateway keeps the last 100,000 decisions, for 24 hours at most.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @OptionGroup var admin: AdminOption
  @Argument(help: "The id of the decision, dc_….") var id: String
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    guard id.wholeMatch(of: /dc_[A-Za-z0-9_-]{1,64}/) != nil else {
      throw StartProblem("\(id) is not a decision id (dc_…).", status: .couldNotRun)
    }
    guard let decision = try await find(try RunningGateway(configuration, admin).client) else {
      throw StartProblem("There is no decision \(id), or it is no longer kept.")
    }
    print(json ? try ToolJSON.text(decision) : decision.text(colour: Terminal.showsColour))
  }

  private func find(_ client: AdminClient) async throws -> Decision? {
    if let answer = try await client.get("/decisions/\(id)") {
      guard answer.status == 200 else { return nil }
      do { return try JSONDecoder().decode(Decision.self, from: answer.body) } catch {
        throw StartProblem(
          "The server at \(client.address) is not this gateway's admin listener.", status: .couldNotRun)
      }
    }
    return try await OperatorStore.with(configuration) { opened in
      guard let event = try await opened.store.event(DecisionID(text: id)) else { return nil }
      return Decision(try await opened.administration.explained(event))
    }
  }
}
