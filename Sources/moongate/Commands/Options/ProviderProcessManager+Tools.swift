import Logging
import MoongateExec
import MoongateProgram

extension ProviderProcessManager {
  /// For command-line tools, which report problems themselves. Only errors of the programs are logged.
  static func forTools() -> ProviderProcessManager {
    ProviderProcessManager(readers: Providers.readers, logger: toolLogger)
  }

  private static var toolLogger: Logger { Logger(label: "exec") { label in LineLog(label: label, level: .error) } }
}
