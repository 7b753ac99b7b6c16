import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateSDK
import MoongateStore

/// `moongate policy explain ID`: why a request was refused.
struct Explain: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract:
      "Tell why: the rule of a decision, its file and line, the facts that it read, the counters before and after.",
    discussion: """
      Every refusal names its decision (decision_id). Asks the gateway that runs, by its admin listener; where none runs, looks into the store. \
      Exits with 1 where the decision is not known, or no longer: the last 100,000 or 24 hours of them are kept.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The decision, dc_….") var id: String
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    guard id.wholeMatch(of: /dc_[A-Za-z0-9_-]{1,64}/) != nil else {
      throw StartProblem("\(id) is no decision: they begin with dc_.", status: .couldNotRun)
    }
    let settings = try configuration.generation().gateway
    guard let decision = try await find(settings) else {
      throw StartProblem("There is no decision \(id), or it is no longer kept.")
    }
    print(json ? try ToolJSON.text(decision) : decision.text(colour: Terminal.showsColour))
  }

  private func find(_ settings: GatewaySettings) async throws -> Decision? {
    if let answer = try await AdminClient(settings).get("/decisions/\(id)") {
      guard answer.status == 200 else { return nil }
      do { return try JSONDecoder().decode(Decision.self, from: answer.body) } catch {
        throw StartProblem(
          "What answers at \(settings.admin) is not this gateway's admin listener.", status: .couldNotRun)
      }
    }
    return try await OperatorStore.with(configuration) { opened in
      try await opened.store.event(DecisionID(text: id)).map(Decision.init)
    }
  }
}
