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
    attacker: Attacker, provider: ProviderName, span: Duration, addresses: Int, accounts: Int = 100, patience: Duration = .seconds(9),
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
    let target = try Target(generation, provider, of: generation.registry ?? providers, wantsNew: attacker == .flood)
    if attacker == .flood, target.secret != nil { throw SimulationProblem.noCodes(provider) }
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
  case nothingToGuess(ProviderName)
  case noFlow(ProviderName)

  package var description: String {
    switch self {
    case .notConfigured(let name, let known):
      "gateway.lua configures no provider \(name); it has \(known.map(\.rawValue).sorted().joined(separator: ", "))"
    case .noCodes(let name): "\(name) sends no codes, so there is no flood of them"
    case .nothingToGuess(let name): "\(name) has neither codes nor secrets here, so there is nothing to guess"
    case .noFlow(let name): "no flow begins with \(name), so nobody can be attacked through it"
    }
  }
}
