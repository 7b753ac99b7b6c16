import ArgumentParser
import MoongateCore
import MoongateProgram
import MoongateSDK

/// `moongate account devices NAME`.
struct AccountDevices: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "devices", abstract: "List or remove the trusted devices of an account.",
    discussion: "The sessions on a device that is removed continue. `end-sessions` ends them and removes all devices.")

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "An account id, a phone number, an email address or a user name.") var name: String
  @Option(help: "No longer trust the device with this id.") var remove: String?
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    try await OperatorStore.with(configuration) { opened in
      let account = try await opened.account(named: name)
      if let remove {
        let acting = opened.administration.acting(as: try identity.identity("moongate account devices"))
        guard try await acting.removeDevice(remove, of: account.id) == .done else {
          throw StartProblem("\(account.id) does not trust a device \(remove).")
        }
      }
      let devices = try await opened.administration.devices(of: account.id).map(DeviceLine.init)
      if json { return print(try ToolJSON.text(devices)) }
      for device in devices { print(device.text) }
    }
  }
}
