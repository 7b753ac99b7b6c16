import Testing

@testable import MoongateCommand

/// The folder that commands use without `--config`.
struct ConfigurationOptionTests {
  @Test func theEnvironmentComesFirst() {
    #expect(ConfigurationOption.standard(["MOONGATE_CONFIG": "/srv/moongate"]) { _ in true } == "/srv/moongate")
    #expect(ConfigurationOption.standard(["MOONGATE_CONFIG": ""]) { _ in true } == "config")
  }

  @Test func aFolderOfThePackageIsFound() {
    #expect(ConfigurationOption.standard([:]) { $0 == "config" || $0 == "/etc/moongate" } == "config")
    #expect(ConfigurationOption.standard([:]) { $0 == "/etc/moongate" } == "/etc/moongate")
    #expect(ConfigurationOption.standard([:]) { _ in false } == "config", "the message names the usual folder")
  }
}
