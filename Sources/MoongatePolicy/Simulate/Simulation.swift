import Foundation
import MoongateCore
import MoongateSDK

/// Simulates an attack on a configuration, on the real engine with a virtual clock, next to honest users.
package struct Simulation: Sendable {
  /// The kind of attack.
  package enum Attacker: String, Sendable, CaseIterable {
    /// Takes over one account by guessing codes.
    case guess
    /// Has codes sent, which costs the operator money and annoys users.
    case flood
    /// Takes over any account by a few guesses at each of many.
    case spray
    /// Creates accounts, which costs storage, hashing time and messages.
    case register
  }

  package let attacker: Attacker
  package let provider: ProviderName
  /// Virtual time.
  package let span: Duration
  /// The number of addresses of the attacker.
  package let addresses: Int
  /// The number of networks (/24) that contain these addresses.
  package let networks: Int
  /// The number of accounts for `spray`.
  package let accounts: Int
  /// The limit on real time. The report states how much virtual time was simulated.
  package let timeLimit: Duration
  package let seed: UInt64
  /// The price of one message; nil if it is not given.
  package let price: Double?

  /// More than five parameters: one for each field.
  package init(
    attacker: Attacker, provider: ProviderName, span: Duration, addresses: Int, networks: Int = 1, accounts: Int = 100,
    timeLimit: Duration = .seconds(9),
    seed: UInt64 = 1, price: Double? = nil
  ) {
    self.attacker = attacker
    self.provider = provider
    self.span = span
    self.addresses = max(1, addresses)
    self.networks = min(max(1, networks), max(1, addresses))
    self.accounts = max(1, accounts)
    self.timeLimit = timeLimit
    self.seed = seed
    self.price = price
  }

  /// Runs the simulation.
  /// - Parameter makeStore: returns a new empty store for exclusive use.
  /// - Throws: `SimulationProblem` if the configuration does not allow this attack; errors of the store.
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
    let environment = { (target: Target) throws -> AttackEnvironment in
      try AttackEnvironment(
        VirtualGateway(generation, providers: providers, store: try makeStore(), seed: seed), target: target,
        policy: policy, span: span,
        addresses: addresses, networks: networks, timeLimit: timeLimit, seed: seed)
    }
    // Registrations also need a target: users with an account sign in with the same provider meanwhile.
    let makeTarget = { () throws -> Target in try Target(generation, provider, of: known, wantsNew: attacker == .flood)
    }
    switch attacker {
    case .guess:
      let target = try makeTarget()
      return try await GuessAttack(policy: policy, span: span).run({ try environment(target) }).report(
        self, policy, accepted: accepted)
    case .flood:
      let target = try makeTarget()
      if target.secret != nil { throw SimulationProblem.noCodes(provider) }
      return try await FloodAttack().run(try environment(target)).report(self, policy, accepted: accepted)
    case .spray:
      return try await SprayAttack(accounts: accounts).run(try environment(try makeTarget())).report(
        self, policy, accepted: accepted)
    case .register:
      let registration = try Registration(generation, provider, of: known)
      return try await RegisterAttack(registration: registration).run(try environment(try makeTarget())).report(
        self, policy, accepted: accepted)
    }
  }
}

/// Why a configuration cannot be attacked in the requested way.
package enum SimulationProblem: Error, Sendable, CustomStringConvertible {
  case notConfigured(ProviderName, [ProviderName])
  case noCodes(ProviderName)
  case noMessages(ProviderName)
  case nothingToGuess(ProviderName)
  case noFlow(ProviderName)
  case noRegistration(ProviderName)
  case registrationClosed(RegistrationRule)

  package var description: String {
    switch self {
    case .notConfigured(let name, let known):
      "gateway.lua does not configure the provider \(name); available: \(known.map(\.rawValue).sorted().joined(separator: ", "))"
    case .noCodes(let name): "\(name) sends no codes, so a flood is not possible"
    case .noMessages(let name): "\(name) sends no SMS, so a price does not apply"
    case .nothingToGuess(let name):
      "\(name) has neither codes nor secrets in this gateway, so there is nothing to guess"
    case .noRegistration(let name): "no flow registers accounts with \(name)"
    case .registrationClosed(.closed): "accounts.lua closes registration, so nobody can register"
    case .registrationClosed: "accounts.lua requires an invitation for a new account, so an attacker cannot register"
    case .noFlow(let name): "no flow begins with \(name), so no account can be attacked through it"
    }
  }
}
