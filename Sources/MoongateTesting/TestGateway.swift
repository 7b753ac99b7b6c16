import Logging
import MoongateCore
import MoongateDelivery
import MoongateSDK
import MoongateStore

/// A whole gateway but for its listeners: the real engine over a store in memory, with a clock, randomness, an outbox
/// and a log that the test holds in its hand.
package struct TestGateway: Sendable {
  package let clock = ManualClock()
  package let random: SeededRandom
  package let store: any Store
  package let generations: ActiveGeneration
  package let providers: ProviderRegistry
  package let outbox: Outbox
  package let keys: KeyRing
  package let log = CapturedLog()
  package let audit: AuditTrail
  package let engine: FlowEngine

  /// - Parameters:
  ///   - generation: see `TestGeneration.gateway(for:)` for the usual one.
  ///   - store: nil for one in memory.
  ///   - web: how providers reach other sites; nobody, unless a test says otherwise.
  ///   - cost: of hashing PINs and passwords.
  package init(
    providers: [any Provider], generation: TestGeneration, store: (any Store)? = nil,
    web: any WebClient = UnreachableWeb(), seed: UInt64 = 1,
    cost: HashCost = .cheap
  ) throws {
    self.providers = try ProviderRegistry(providers)
    self.store = try store ?? SQLiteStore.memory()
    random = SeededRandom(seed: seed)
    generations = ActiveGeneration(generation, at: clock.now())
    outbox = Outbox(clock: clock)
    keys = try KeyRing(master: Array(repeating: 7, count: 32))
    audit = AuditTrail(store: self.store, logger: log.logger)
    engine = FlowEngine(
      store: self.store, generations: generations, providers: self.providers,
      delivery: Deliveries(outbox: outbox, clock: clock, random: random, web: web, logger: log.logger), web: web,
      hashing: HashingPool(keys: keys, random: random, cost: cost), clock: clock, random: random, keys: keys,
      audit: audit, logger: log.logger)
  }

  /// What an operator does to people.
  package var desk: AccountAdministration {
    AccountAdministration(store: store, providers: providers, keys: keys, clock: clock, random: random)
  }

  /// What an operator does to the tokens of programs.
  package var serviceTokens: ServiceTokens { ServiceTokens(store: store, keys: keys, clock: clock, random: random) }

  /// How many messages went out.
  package var sent: Int { outbox.entries.count }

  /// The code of the latest message to someone; nil where none went there.
  package func code(for address: String) -> String? { outbox.entries.first { $0.message.to == address }?.message.code }
}

extension TestGeneration {
  /// The flows `login`, `register` and `enter`, each of one step for which any of the providers will do, with the
  /// shipped numbers for each of them and messages that go to the outbox.
  package static func gateway(for providers: [any Provider], settings: GatewaySettings = .test(), routes: [Route] = [])
    -> Self
  {
    var settings = settings
    for provider in providers {
      let names = provider.descriptor.settings.compactMap { if case .messages = $0.kind { $0.name } else { nil } }
      settings.providers[provider.descriptor.name] = ProviderSettings(
        deliveries: Dictionary(names.map { ($0, .outbox) }) { first, _ in first })
    }
    let names = providers.map(\.descriptor.name)
    let steps = [StepRule(choices: names, isSkippable: false, when: nil)]
    return TestGeneration(
      gateway: settings, routes: routes,
      flows: [
        .test("login", account: .existing, steps: steps), .test("register", account: .new, steps: steps),
        .test("enter", account: .any, steps: steps),
      ],
      policies: names.map { .test($0) })
  }
}
