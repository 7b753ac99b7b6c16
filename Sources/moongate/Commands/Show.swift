import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateSDK

/// `moongate policy show NAME`: what is in force, and which line said it. `accounts` is accounts.lua, `token` what
/// counts wrong tokens.
struct Show: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract:
      "Print every value of a provider's policy in force, or of accounts.lua, with the file and line that it came from.",
    discussion: """
      Asks the gateway that runs, by its admin listener; where none runs, reads the folder. The folder may say something else than what is active: it was \
      refused, or it was changed a moment ago. --candidate shows what it says.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The provider, such as phone_otp; token; or accounts.") var name: ProviderName
  @Flag(help: "Show what the folder says, whether it is active or not.") var candidate = false
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    if candidate { return try tell(listing(of: try configuration.generation()), "the folder \(configuration.folder)") }
    let folder = ConfigurationFolder(
      path: try configuration.checked(), providers: try Providers.registry(),
      programs: ProviderProcessManager.forTools().loading())
    let generation = folder.generation()
    if let settings = generation?.gateway ?? folder.settings(), let active = try await ActivePolicies.ask(settings) {
      guard let found = active.policies.first(where: { $0.name == name.rawValue }) else {
        throw unknown(active.policies.map(\.name))
      }
      if generation?.id != active.generation {
        let state = generation == nil ? "has problems" : "says something else, which is not active"
        note("The folder \(configuration.folder) \(state): `moongate check` and --candidate tell more.")
      }
      return try tell(found.listing, "active: generation \(active.generation.prefix(8))")
    }
    if generation != nil {
      note("No gateway runs with this configuration, so this is what the folder \(configuration.folder) says.")
    }
    try tell(listing(of: try generation ?? configuration.generation()), nil)
  }

  private func listing(of generation: any PolicyGeneration) throws -> PolicyListing {
    if name.rawValue == ActivePolicies.Listing.accounts { return PolicyListing(generation.accounts) }
    if name == .token { return PolicyListing(generation.tokenPolicy) }
    guard let policy = generation.policies[name] else {
      throw unknown(
        generation.policies.keys.map(\.rawValue) + [ProviderName.token.rawValue, ActivePolicies.Listing.accounts])
    }
    return PolicyListing(policy)
  }

  private func unknown(_ names: [String]) -> StartProblem {
    StartProblem(
      "gateway.lua configures no provider \(name)\(Suggestion.phrase(for: name.rawValue, among: names)).",
      status: .couldNotRun)
  }

  /// Beside the output, which programs read.
  private func note(_ sentence: String) { FileHandle.standardError.write(Data((sentence + "\n").utf8)) }

  private func tell(_ listing: PolicyListing, _ origin: String?) throws {
    print(json ? try ToolJSON.text(listing) : listing.text(colour: Terminal.showsColour, origin: origin))
  }
}
