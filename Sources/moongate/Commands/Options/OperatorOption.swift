import ArgumentParser
import Foundation
import MoongateCore
import MoongateProgram

/// The name of the operator who runs the command, for the audit trail.
struct OperatorOption: ParsableArguments {
  @Option(
    name: .customLong("as"), help: "The operator's name in the audit trail. Default: $SUDO_USER, or the logged-in user."
  ) var name: String?

  /// - Parameter command: the command as typed, for example `moongate account lock`.
  func identity(_ command: String) throws(StartProblem) -> OperatorIdentity {
    if let name, name.trimmingCharacters(in: .whitespaces).isEmpty {
      throw StartProblem("--as must not be empty.", status: .couldNotRun)
    }
    let environment = ProcessInfo.processInfo.environment
    let known = [name, environment["SUDO_USER"], NSUserName()].compactMap(\.self).first { !$0.isEmpty }
    return OperatorIdentity(name: known, tool: command)
  }
}
