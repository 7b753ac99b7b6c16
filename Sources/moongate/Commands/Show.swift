import ArgumentParser
import MoongateCore
import MoongatePolicy
import MoongateSDK

/// `moongate policy show NAME`: what is in force, and which line said it. `accounts` is accounts.lua, `token` what counts wrong tokens.
struct Show: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Print every value of a provider's policy in force, or of accounts.lua, with the file and line that it came from.")

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The provider, such as phone_otp; token; or accounts.") var name: ProviderName
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    let generation = try configuration.generation()
    if name.rawValue == "accounts" { return try tell(PolicyListing(generation.accounts)) }
    if name == .token { return try tell(PolicyListing(generation.tokenPolicy)) }
    guard let policy = generation.policies[name] else {
      let names = generation.policies.keys.sorted().map(\.rawValue).joined(separator: ", ")
      throw StartProblem("gateway.lua configures no provider \(name). There are: \(names), token and accounts.", status: .couldNotRun)
    }
    try tell(PolicyListing(policy))
  }

  private func tell(_ listing: PolicyListing) throws {
    print(json ? try ToolJSON.text(listing) : listing.text(colour: Terminal.showsColour))
  }
}
