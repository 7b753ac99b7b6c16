import Foundation
import MoongateGateway
import MoongateProgram
import MoongateProviderTools
import MoongateSDK

/// The `moongate` program, for programs that add their own providers:
/// ```swift
/// import MoongateCommand
///
/// await Moongate.run(providers: Moongate.shipped + [PigeonPost()])
/// ```
/// Such a program contains the tools of `moongate-provider`, because only it has the provider that they test.
public enum Moongate {
  /// The providers included in Moongate, in the order in which pages offer them.
  public static let shipped: [any Provider] = Providers.shipped

  /// Runs the command of the command line and exits the process with status 0 (success), 1 (problems found) or 2 (could
  /// not run).
  /// - Parameter providers: all providers of this program, in the order in which pages offer them.
  public static func run(providers: [any Provider] = shipped) async -> Never {
    await Providers.$all.withValue(providers) {
      await ProviderTools.$run.withValue({ await CommandLineCall.run(ProviderToolsCommand.self, $0) }) {
        await CommandLineCall.run(RootCommand.self)
      }
    }
    exit(ExitStatus.fine.rawValue)
  }
}
