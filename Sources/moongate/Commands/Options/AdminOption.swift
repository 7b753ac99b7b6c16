import ArgumentParser
import MoongateCore
import MoongatePolicy
import MoongateProgram

/// The admin listener of the running gateway.
struct AdminOption: ParsableArguments {
  @Option(
    name: .customLong("admin"), help: "The admin listener, HOST:PORT. Default: the listener of the configuration.")
  var address: String?

  /// - Returns: nil if the option is not given.
  /// - Throws: an error with exit status 2 if its value is not an address.
  func named() throws(StartProblem) -> ListenAddress? {
    guard let text = address else { return nil }
    guard let address = ListenAddress(text), address.port > 0 else {
      throw StartProblem(
        "--admin \(text) is not an address. Write HOST:PORT, for example 127.0.0.1:9901.", status: .couldNotRun)
    }
    return address
  }
}

extension ConfigurationOption {
  /// The admin listener, from `admin` of gateway.lua. Other problems of the folder do not matter.
  /// - Throws: an error with exit status 2 if the folder does not exist, and with exit status 1 if `admin` cannot be
  ///   read.
  func adminListener() throws(StartProblem) -> AdminListener {
    switch ConfigurationLoader(providers: try Providers.registry().all).adminListener(folder: try checked()) {
    case .success(let listener): return listener
    case .failure(let refused):
      let reasons = refused.problems.map(\.description).joined(separator: "; ")
      throw StartProblem(
        "`admin` in \(folder)/gateway.lua cannot be read. \(reasons)\(reasons.hasSuffix(".") ? "" : ".") "
          + "Correct the file, or name the admin listener with --admin HOST:PORT.")
    }
  }
}
