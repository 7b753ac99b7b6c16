import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateProgram
import MoongateSDK

/// `moongate policy show NAME`: prints the active values with the lines that set them. `accounts` stands for
/// accounts.lua, `routes` for routes.lua, `token` for the limits on wrong access tokens.
struct Show: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract:
      "Print the active values of a provider's policy, of accounts.lua or of routes.lua, with the file and line of each.",
    discussion: """
      Asks the admin listener of the running gateway; if none runs, reads the folder. The folder can differ from the active configuration because it was \
      refused or has just been changed. --candidate shows the values of the folder. Of routes, what differs from the defaults is listed.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The name of a provider, for example phone_otp, or token, accounts or routes.") var name: ProviderName
  @Flag(help: "Show the values of the folder, whether they are active or not.") var candidate = false
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    if candidate {
      return try printReport(listing(of: try configuration.generation()), "the folder \(configuration.folder)")
    }
    let folder = ConfigurationFolder(
      path: try configuration.checked(), providers: try Providers.registry(),
      programs: ProviderProcessManager.forTools().loading())
    let generation = folder.generation()
    if let settings = generation?.gateway ?? folder.settings(), let active = try await ActivePolicies.ask(settings) {
      guard let found = active.policies.first(where: { $0.name == name.rawValue }) else {
        throw unknown(active.policies.map(\.name))
      }
      if generation?.id != active.generation {
        let state = generation == nil ? "has problems" : "has other values, which are not active"
        note("The folder \(configuration.folder) \(state). See `moongate check` and --candidate.")
      }
      return try printReport(found.listing, "active: generation \(active.generation.prefix(8))")
    }
    if generation != nil {
      note("No gateway runs with this configuration, so these are the values of the folder \(configuration.folder).")
    }
    try printReport(listing(of: try generation ?? configuration.generation()), nil)
  }

  private func listing(of generation: any PolicyGeneration) throws -> PolicyListing {
    if name.rawValue == ActivePolicies.Listing.accounts { return PolicyListing(generation.accounts) }
    if name.rawValue == PolicyListing.routes { return PolicyListing(generation.routes, generation.gateway) }
    if name == .token { return PolicyListing(generation.tokenPolicy) }
    guard let policy = generation.policies[name] else {
      throw unknown(
        generation.policies.keys.map(\.rawValue) + [
          ProviderName.token.rawValue, ActivePolicies.Listing.accounts, PolicyListing.routes,
        ])
    }
    return PolicyListing(policy)
  }

  private func unknown(_ names: [String]) -> StartProblem {
    StartProblem(
      "gateway.lua configures no provider \(name)\(Suggestion.phrase(for: name.rawValue, among: names)).",
      status: .couldNotRun)
  }

  /// Prints to standard error, because programs read standard output.
  private func note(_ sentence: String) { LineLog.standardError(sentence + "\n") }

  private func printReport(_ listing: PolicyListing, _ origin: String?) throws {
    print(json ? try ToolJSON.text(listing) : listing.text(colour: Terminal.showsColour, origin: origin))
  }
}
