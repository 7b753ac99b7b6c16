import ArgumentParser
import MoongateCore
import MoongatePolicy
import MoongateSDK

/// `moongate policy show NAME`: what is in force, and which line said it.
struct Show: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Print every value of a provider's policy in force, with the file and line that it came from.")

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The provider, such as phone_otp.") var name: ProviderName
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    let generation = try configuration.generation()
    guard let policy = generation.policies[name] else {
      let names = generation.policies.keys.sorted().map(\.rawValue).joined(separator: ", ")
      throw StartProblem("gateway.lua configures no provider \(name). There are: \(names).", status: .couldNotRun)
    }
    let listing = PolicyListing(policy)
    print(json ? try ToolJSON.text(listing) : listing.text(colour: Terminal.showsColour))
  }
}
