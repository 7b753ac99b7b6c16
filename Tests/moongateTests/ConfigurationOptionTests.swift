import Foundation
import Testing

@testable import MoongateGateway

/// The folder that commands use without `--config`.
struct ConfigurationOptionTests {
  private func standard(_ folders: [String: uid_t], named: String = "") -> String {
    ConfigurationOption.standard(["MOONGATE_CONFIG": named]) { folders[$0] }
  }

  @Test func theEnvironmentComesFirst() {
    #expect(standard(["config": geteuid(), "/etc/moongate": 0], named: "/srv/moongate") == "/srv/moongate")
  }

  @Test func aFolderOfThePackageIsFound() {
    #expect(standard(["config": geteuid(), "/etc/moongate": 0]) == "config")
    #expect(standard(["config": 0, "/etc/moongate": 0]) == "config")
    #expect(standard(["/etc/moongate": 0]) == "/etc/moongate")
    #expect(standard([:]) == "config", "the message names the usual folder")
  }

  /// Attack: another user makes a folder `config` with programs in /tmp, where an operator runs a command.
  @Test func aFolderOfAnotherUserIsNotPreferred() {
    #expect(standard(["config": geteuid() + 1, "/etc/moongate": 0]) == "/etc/moongate")
  }
}
