import Foundation
import MoongateCore
import MoongateSDK

/// An attacker against a configuration, on the real engine and a virtual clock, with honest people beside them.
package struct Simulation: Sendable {
  /// What the attacker is after.
  package enum Attacker: String, Sendable, CaseIterable {
    /// One person's account, by guessing codes for as long as it takes.
    case guess
    /// The operator's money and one person's patience, by having codes sent.
    case flood
    /// Anybody's account, by a few guesses at each of many.
    case spray
  }

  package let attacker: Attacker
  package let provider: ProviderName
  /// Virtual time.
  package let span: Duration
  /// How many addresses the attacker has.
  package let addresses: Int
  /// How many accounts are sprayed.
  package let accounts: Int
  /// How long it may take in real time; what is not reached by then is said in the report.
  package let patience: Duration
  package let seed: UInt64

  package init(
    attacker: Attacker, provider: ProviderName, span: Duration, addresses: Int, accounts: Int = 1_000, patience: Duration = .seconds(9),
    seed: UInt64 = 1
  ) {
    self.attacker = attacker
    self.provider = provider
    self.span = span
    self.addresses = max(1, addresses)
    self.accounts = max(1, accounts)
    self.patience = patience
    self.seed = seed
  }

  /// Runs it.
  /// - Parameter makeStore: gives an empty store of the simulation's own at each call.
  /// - Throws: `SimulationProblem` where the configuration cannot be attacked this way; a fault of the store.
  package func run(_ generation: any PolicyGeneration, providers: ProviderRegistry, makeStore: @escaping () throws -> any Store) async throws
    -> SimulationReport
  {
    guard let policy = generation.policies[provider] else { throw SimulationProblem.notConfigured(provider, Array(generation.policies.keys)) }
    guard let codes = providers[provider] as? any CodeProvider else { throw SimulationProblem.noCodes(provider) }
    let target = try Target(generation, codes, wantsNew: attacker == .flood)
    let stage = { () throws -> Stage in
      try Stage(
        VirtualGateway(generation, providers: providers, store: try makeStore(), seed: seed), target: target, policy: policy, span: span,
        addresses: addresses, patience: patience, seed: seed)
    }
    switch attacker {
    case .guess: return try await GuessAttack(policy: policy, span: span).run(stage).report(self, policy, accepted: generation.gateway.riskBudget)
    case .flood: return try await FloodAttack().run(try stage()).report(self, policy, accepted: generation.gateway.riskBudget)
    case .spray: return try await SprayAttack(accounts: accounts).run(try stage()).report(self, policy, accepted: generation.gateway.riskBudget)
    }
  }
}

/// Why a configuration cannot be attacked as asked.
package enum SimulationProblem: Error, Sendable, CustomStringConvertible {
  case notConfigured(ProviderName, [ProviderName])
  case noCodes(ProviderName)
  case noFlow(ProviderName)

  package var description: String {
    switch self {
    case .notConfigured(let name, let known):
      "gateway.lua configures no provider \(name); it has \(known.map(\.rawValue).sorted().joined(separator: ", "))"
    case .noCodes(let name): "\(name) sends no codes; only providers that do can be simulated"
    case .noFlow(let name): "no flow begins with \(name), so nobody can be attacked through it"
    }
  }
}

/// Which flow is attacked, and how people are named to it.
struct Target: Sendable {
  let flow: String
  /// By which an owner signs in to the account that is there.
  let ownersFlow: String
  let provider: any CodeProvider
  private let field: InputField
  private let region: String

  init(_ generation: any PolicyGeneration, _ provider: any CodeProvider, wantsNew: Bool) throws(SimulationProblem) {
    let name = provider.descriptor.name
    // An account's own flows begin with a session, which neither strangers nor attackers have.
    let flows = generation.flows.values.filter { flow in
      FlowPurpose(flow: flow.name) == .signIn && flow.steps.first?.choices.contains(name) ?? false
    }.sorted { $0.name < $1.name }
    // Messages to strangers are to be had where anybody may register; guesses are worth making where people have accounts.
    let wanted: [AccountRule] = wantsNew ? [.new, .any, .existing] : [.existing, .any]
    guard let flow = wanted.lazy.compactMap({ rule in flows.first { $0.account == rule } }).first,
      let field = provider.descriptor.beginFields.first(where: { $0.kind == .phone || $0.kind == .email })
    else { throw .noFlow(name) }
    self.flow = flow.name
    ownersFlow = [AccountRule.existing, .any].lazy.compactMap { rule in flows.first { $0.account == rule } }.first?.name ?? flow.name
    self.provider = provider
    self.field = field
    region = generation.gateway.region
  }

  /// What to type for the person with this number.
  func fields(_ person: Int) -> [String: InputValue] {
    // Numbers of a country that has ten digits for them; libphonenumber's possible is what is asked of them.
    [field.name: .text(field.kind == .email ? "person\(person)@example.com" : "+91" + String(9_000_000_000 + person))]
  }

  /// The person's identifier.
  func identifier(_ person: Int) throws(InputProblem) -> Identifier {
    try provider.readIdentifier(ProviderInput(fields: fields(person), defaultRegion: region))
  }
}
