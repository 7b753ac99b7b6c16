import Logging
import MoongateCore
import MoongateDelivery
import MoongateSDK
import MoongateStore

/// A complete gateway without listeners: the real engine with an in-memory store, and with a clock, randomness, an
/// outbox and a log that the test controls.
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

  /// More than five parameters: the parts that tests vary, most with defaults.
  /// - Parameters:
  ///   - generation: usually `TestGeneration.gateway(for:)`.
  ///   - store: nil for an in-memory store.
  ///   - web: the HTTP client for providers. By default, requests fail.
  ///   - cost: the cost of hashing PINs and passwords.
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

  /// The operators' operations on accounts.
  package var administration: AccountAdministration {
    AccountAdministration(store: store, providers: providers, keys: keys, clock: clock, random: random)
  }

  /// The operators' operations on service tokens.
  package var serviceTokens: ServiceTokens { ServiceTokens(store: store, keys: keys, clock: clock, random: random) }

  /// The number of sent messages.
  package var sent: Int { outbox.entries.count }

  /// The code of the latest message to an address; nil if none was sent.
  package func code(for address: String) -> String? { outbox.entries.first { $0.message.to == address }?.message.code }
}

extension TestGeneration {
  /// The flows `login`, `register` and `enter`, each with one step that any of the providers can pass, the shipped
  /// numbers for each provider, and messages that go to the outbox.
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
    // As in the shipped login.lua.
    let sites = providers.map(\.descriptor).filter { $0.identifierKinds.contains(.federated) }.map(\.name)
    return TestGeneration(
      gateway: settings, routes: routes,
      flows: [
        .test("login", account: .existing, registers: Set(sites), steps: steps),
        .test("register", account: .new, steps: steps),
        .test("enter", account: .any, steps: steps),
      ],
      policies: names.map { .test($0) })
  }
}
