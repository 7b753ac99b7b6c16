import Hummingbird
import HummingbirdCore
import Logging
import MoongateCore
import MoongateSDK
import NIOCore

/// The operator's listener: health, policy, locks, events, outbox. Where gateway.lua names tokens it asks for one;
/// otherwise it asks nobody who they are, and listens on loopback alone.
package struct AdminApplication: ListeningApplication {
  /// Answers the operator's requests.
  package let responder: GatewayResponder
  private let clock: any GatewayClock
  private let eventLoops: any EventLoopGroup
  private let logger: Logger

  /// - Parameters:
  ///   - accounts: what an operator does to people.
  ///   - tokens: and to the tokens of programs.
  ///   - address: where it listens; nil: where gateway.lua says.
  ///   - nodes: the gateways that serve from the store; none while that is not known.
  ///   - values: the values of a generation, and what they grant.
  ///   - reload: builds a generation from the folder and switches to it; gives the problems for which it was refused.
  ///     The gate is passed over where it is told so.
  ///   - outbox: the messages of the outbox, newest first.
  ///   - resetFactor: removes a factor of an account.
  ///   - suggestion: what follows a word that is not known, such as "; did you mean `kind`?".
  ///   - shadow: what lets a candidate look on.
  ///   - upgrade: starts the program again in this process's place.
  ///   - metrics: what other parts have counted.
  package init(
    store: any Store, accounts: AccountAdministration, tokens: ServiceTokens, generations: ActiveGeneration,
    audit: AuditTrail,
    clock: any GatewayClock,
    random: any RandomSource,
    pages: PageRenderer, address: ListenAddress? = nil, eventLoops: any EventLoopGroup, logger: Logger,
    nodes: @escaping @Sendable () -> [ServingNode] = { [] },
    values: @escaping @Sendable (any PolicyGeneration) -> PolicyValues = { PolicyValues(generation: $0.id) },
    reload: @escaping @Sendable (_ isForced: Bool) async -> [ConfigurationProblem],
    outbox: @escaping @Sendable () -> [OutboxEntry],
    resetFactor: @escaping FactorResetting,
    suggestion: @escaping @Sendable (_ word: String, _ known: [String]) -> String = { _, _ in "" },
    shadow: ShadowControl = .none,
    upgrade: @escaping @Sendable (_ within: Duration) async -> UpgradeOutcome = { _ in
      .kept("This gateway cannot be upgraded while it runs.")
    },
    metrics: @escaping @Sendable () async -> [MetricFamily] = { [] }
  ) {
    let address = address ?? generations.current.gateway.admin
    self.clock = clock
    let failures = AdminTokenFailures(clock: clock)
    let entrance = AdminGuard(
      listen: address, startTokens: generations.current.gateway.allAdminTokens, failures: failures)
    let calls: [[Endpoint]] = [
      HealthCalls(store: store, entrance: entrance).endpoints,
      PolicyCalls(
        generations: generations, nodes: nodes, reload: reload, values: values, audit: audit, clock: clock,
        entrance: entrance,
        suggestion: suggestion, shadow: shadow
      ).endpoints,
      MetricCalls(generations: generations, audit: audit, others: { await metrics() + failures.families }).endpoints,
      LockCalls(desk: accounts, clock: clock, entrance: entrance).endpoints,
      EventCalls(store: store, audit: audit, desk: accounts, clock: clock, suggestion: suggestion).endpoints,
      AccountCalls(desk: accounts, clock: clock, entrance: entrance, suggestion: suggestion, reset: resetFactor)
        .endpoints,
      GroupCalls(desk: accounts, entrance: entrance).endpoints,
      TokenCalls(tokens: tokens, entrance: entrance).endpoints,
      OutboxCalls(entries: outbox, pages: pages).endpoints,
      UpgradeCalls(
        upgrade: upgrade, acts: OperatorActs(audit: audit, clock: clock, entrance: entrance), suggestion: suggestion
      ).endpoints,
    ]
    let endpoints = calls + [AdminDescription(describing: calls.flatMap { $0 }).endpoints, pages.endpoints]
    responder = GatewayResponder(
      table: EndpointTable(endpoints.flatMap { $0 }), generations: generations, random: random,
      recorder: RefusalRecorder(audit: audit, clock: clock, logger: logger), reader: BodyReader(), pages: pages,
      guarded: { exchange, _ throws(Refusal) in try entrance.check(exchange) })
    self.eventLoops = eventLoops
    self.logger = logger.ofLibrary
  }

  /// The application around the responder, for tests.
  package var application: Application<GatewayResponder> {
    Application(
      responder: responder, configuration: ApplicationConfiguration(serverName: nil),
      eventLoopGroupProvider: .shared(eventLoops), logger: logger)
  }

  package func serve(_ socket: ListeningSocket, gate: AcceptGate?, onListening: @escaping @Sendable () async -> Void)
    async throws
  {
    try await HTTP1Channel(responder: responder.serving(clock: clock, logger: logger)).serve(
      socket, on: eventLoops, logger: logger, gate: gate, onListening: onListening)
  }
}
