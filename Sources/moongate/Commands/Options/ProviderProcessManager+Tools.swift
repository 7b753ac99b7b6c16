import Logging
import MoongateExec

extension ProviderProcessManager {
  /// For command-line tools, which report problems themselves. Only errors of the programs are logged.
  static func forTools() -> ProviderProcessManager {
    ProviderProcessManager(readers: Providers.readers, logger: toolLogger)
  }

  /// Programs without a configuration, for tests of a provider.
  /// - Parameter listener: receives the notifications of the programs.
  static func programsForTools(listener: @escaping @Sendable (ReceivedNotification) -> Void) -> Programs {
    // The findings of the suite report violations, so nothing is logged.
    let silent = Logger(label: "exec") { _ in SwiftLogNoOpLogHandler() }
    return Programs(
      readers: Providers.readers, logger: silent, listener: listener, jitter: { Double.random(in: 0..<1) })
  }

  private static var toolLogger: Logger { Logger(label: "exec") { label in LineLog(label: label, level: .error) } }
}
