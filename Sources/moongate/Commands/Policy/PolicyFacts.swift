import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateProgram
import MoongateSDK

/// `moongate policy facts NAME`: prints the facts that a policy would see.
struct PolicyFacts: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "facts", abstract: "Print the facts that a policy would see for a phone number or an email address.",
    discussion: """
      The facts come from the identifier, from its account, and from the counters of the store. Facts of a request, such as its device \
      or flow, are left out; --ip sets its IP address. The command charges no limit and writes nothing. Exit status: 2 if no configured \
      provider accepts the identifier.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "A phone number or an email address.") var name: String
  @Option(help: "The provider whose policy is used. Default: the first that accepts NAME.") var provider: ProviderName?
  @Option(help: "The IP address of the request.") var ip: String?
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    let address = try ip.map { text in
      guard let address = IPAddressText.parse(text.utf8) else {
        throw StartProblem("--ip \(text) is not an IP address.", status: .couldNotRun)
      }
      return address
    }
    let generation = try configuration.generation()
    let (policy, identifier) = try read(generation)
    guard Self.hasStore(generation.gateway) else {
      LineLog.standardError("There is no store yet, so there are no accounts and no counters.\n")
      let facts = PersonFacts(
        policy, in: generation, keys: try KeyRing(master: [UInt8](repeating: 0, count: 32)),
        at: SystemClock(floor: Timestamp(milliseconds: 0)).now()
      )
      .facts(of: identifier, nil, from: address)
      return try printReport(FactListing(facts, of: policy, in: generation, knowsAddress: address != nil))
    }
    try await OperatorStore.with(configuration) { opened in
      let account = try await opened.store.accounts(naming: identifier).first
      do {
        let facts = try await PersonFacts(policy, in: opened.generation, keys: opened.keys, at: opened.now)
          .facts(of: identifier, account, from: address, in: opened.store)
        try printReport(FactListing(facts, of: policy, in: opened.generation, knowsAddress: address != nil))
      } catch let fault as PolicyFault {
        throw StartProblem("\(fault)")
      }
    }
  }

  /// The selected policy and the parsed identifier.
  private func read(_ generation: any PolicyGeneration) throws -> (ProviderPolicy, Identifier) {
    let registry = try generation.registry ?? Providers.registry()
    if let provider, generation.policies[provider] == nil {
      let names = generation.policies.keys.map(\.rawValue)
      throw StartProblem(
        "gateway.lua configures no provider \(provider)\(Suggestion.phrase(for: provider.rawValue, among: names)).",
        status: .couldNotRun)
    }
    let asked = registry.all.filter { one in
      let name = one.descriptor.name
      return generation.policies[name] != nil && (provider == nil || provider == name)
    }
    var complaint: String?
    let tries = asked.flatMap { one in
      one.descriptor.beginFields.filter { one.descriptor.identifierKind(of: $0) != nil }.map { (one, $0) }
    }
    for (one, field) in tries {
      let input = ProviderInput(fields: [field.name: .text(name)], defaultRegion: generation.gateway.region)
      do throws(InputProblem) {
        let identifier: Identifier?
        if let codes = one as? any CodeProvider {
          identifier = try codes.readIdentifier(input)
        } else {
          identifier = try (one as? any FullProvider)?.readIdentifier(input)
        }
        if let identifier, let policy = generation.policies[one.descriptor.name] { return (policy, identifier) }
      } catch {
        complaint = complaint ?? error.detail
      }
    }
    let why = complaint.map { " \($0)" } ?? ""
    let whose = provider.map { "The provider \($0)" } ?? "No configured provider"
    throw StartProblem(
      "\(whose) accepts \(name) as a phone number or an email address. Write +1305…, with the country code, or name@example.com.\(why)",
      status: .couldNotRun)
  }

  private static func hasStore(_ gateway: GatewaySettings) -> Bool {
    if case .sqlite(let path) = gateway.store { return FileManager.default.fileExists(atPath: path) }
    return true
  }

  private func printReport(_ listing: FactListing) throws {
    print(json ? try ToolJSON.text(listing) : listing.text(colour: Terminal.showsColour))
  }
}
