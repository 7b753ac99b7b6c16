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
    /// Rows, hashes and messages, by making accounts one after another.
    case register
  }

  package let attacker: Attacker
  package let provider: ProviderName
  /// Virtual time.
  package let span: Duration
  /// How many addresses the attacker has.
  package let addresses: Int
  /// Over how many networks (/24) these are spread.
  package let networks: Int
  /// How many accounts are sprayed.
  package let accounts: Int
  /// How long it may take in real time; what is not reached by then is said in the report.
  package let patience: Duration
  package let seed: UInt64
  /// What one message costs; nil: nobody said.
  package let price: Double?

  package init(
    attacker: Attacker, provider: ProviderName, span: Duration, addresses: Int, networks: Int = 1, accounts: Int = 100,
    patience: Duration = .seconds(9),
    seed: UInt64 = 1, price: Double? = nil
  ) {
    self.attacker = attacker
    self.provider = provider
    self.span = span
    self.addresses = max(1, addresses)
    self.networks = min(max(1, networks), max(1, addresses))
    self.accounts = max(1, accounts)
    self.patience = patience
    self.seed = seed
    self.price = price
  }

  /// Runs it.
  /// - Parameter makeStore: gives an empty store of the simulation's own at each call.
  /// - Throws: `SimulationProblem` where the configuration cannot be attacked this way; a fault of the store.
  package func run(
    _ generation: any PolicyGeneration, providers: ProviderRegistry, makeStore: @escaping () throws -> any Store
  ) async throws
    -> SimulationReport
  {
    guard let policy = generation.policies[provider] else {
      throw SimulationProblem.notConfigured(provider, Array(generation.policies.keys))
    }
    let known = generation.registry ?? providers
    if price != nil, !(known.descriptor(provider)?.identifierKinds.contains(.phone) ?? false) {
      throw SimulationProblem.noMessages(provider)
    }
    let accepted = generation.gateway.riskBudget
    let stage = { (target: Target) throws -> Stage in
      try Stage(
        VirtualGateway(generation, providers: providers, store: try makeStore(), seed: seed), target: target,
        policy: policy, span: span,
        addresses: addresses, networks: networks, patience: patience, seed: seed)
    }
    // Of registrations too: people who have an account sign in by the same provider meanwhile.
    let makeTarget = { () throws -> Target in try Target(generation, provider, of: known, wantsNew: attacker == .flood)
    }
    switch attacker {
    case .guess:
      let target = try makeTarget()
      return try await GuessAttack(policy: policy, span: span).run({ try stage(target) }).report(
        self, policy, accepted: accepted)
    case .flood:
      let target = try makeTarget()
      if target.secret != nil { throw SimulationProblem.noCodes(provider) }
      return try await FloodAttack().run(try stage(target)).report(self, policy, accepted: accepted)
    case .spray:
      return try await SprayAttack(accounts: accounts).run(try stage(try makeTarget())).report(
        self, policy, accepted: accepted)
    case .register:
      let registration = try Registration(generation, provider, of: known)
      return try await RegisterAttack(registration: registration).run(try stage(try makeTarget())).report(
        self, policy, accepted: accepted)
    }
  }
}

/// Why a configuration cannot be attacked as asked.
package enum SimulationProblem: Error, Sendable, CustomStringConvertible {
  case notConfigured(ProviderName, [ProviderName])
  case noCodes(ProviderName)
  case noMessages(ProviderName)
  case nothingToGuess(ProviderName)
  case noFlow(ProviderName)
  case noRegistration(ProviderName)

  package var description: String {
    switch self {
    case .notConfigured(let name, let known):
      "gateway.lua configures no provider \(name); it has \(known.map(\.rawValue).sorted().joined(separator: ", "))"
    case .noCodes(let name): "\(name) sends no codes, so there is no flood of them"
    case .noMessages(let name): "\(name) sends no SMS, so there is no price of one"
    case .nothingToGuess(let name): "\(name) has neither codes nor secrets here, so there is nothing to guess"
    case .noRegistration(let name): "no flow makes accounts by \(name), so there is nothing to register"
    case .noFlow(let name): "no flow begins with \(name), so nobody can be attacked through it"
    }
  }
}
