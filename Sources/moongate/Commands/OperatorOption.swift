import ArgumentParser
import Foundation
import MoongateCore

/// Who gives the command: the audit trail tells it with what was done.
struct OperatorOption: ParsableArguments {
  @Option(
    name: .customLong("as"), help: "Who does it, for the audit trail. Usually $SUDO_USER, or the user who is logged in."
  ) var name: String?

  /// - Parameter command: as it is typed, such as `moongate account lock`.
  func identity(_ command: String) throws(StartProblem) -> OperatorIdentity {
    if let name, name.trimmingCharacters(in: .whitespaces).isEmpty {
      throw StartProblem("--as names nobody.", status: .couldNotRun)
    }
    let environment = ProcessInfo.processInfo.environment
    let known = [name, environment["SUDO_USER"], NSUserName()].compactMap(\.self).first { !$0.isEmpty }
    return OperatorIdentity(name: known, tool: command)
  }
}
