import Hummingbird
import HummingbirdCore
import Logging
import MoongateCore
import MoongateSDK
import NIOCore

/// The admin listener: health, policy, locks, events and outbox.
///
/// If gateway.lua defines tokens, calls must carry one. Otherwise, calls are not authenticated, and the listener is
/// bound to loopback.
package struct AdminApplication: ListeningApplication {
  /// Answers the requests of operators.
  package let responder: GatewayResponder
  private let address: ListenAddress
  private let clock: any GatewayClock
  private let eventLoops: any EventLoopGroup
  private let logger: Logger

  /// More than five parameters: one for each service.
  /// - Parameters:
  /// - accounts: account administration.
  /// - tokens: service token administration.
  /// - address: the listen address; nil: the one in gateway.lua.
  /// - nodes: the gateways that serve from the store; empty while that is unknown.
  /// - values: the values of a generation, and the guesses that they allow.
  /// - reload: builds a generation from the folder and activates it; returns the problems if it is refused. `isForced`
  ///   skips the gate.
  /// - outbox: the messages of the outbox, newest first.
  /// - forwardingFaults: the log that the public listener uses; nil for one of its own.
  /// - resetFactor: removes a factor of an account.
  /// - sendInvitation: creates an invitation and sends it.
  /// - suggestion: the text after an unknown word, such as "; did you mean `kind`?".
  /// - shadow: controls the shadow candidate.
  /// - upgrade: replaces this process by a new one.
  /// - isEnding: whether the gateway has been told to stop.
  /// - metrics: metrics of other components.
  package init(
    store: any Store, accounts: AccountAdministration, tokens: ServiceTokens, generations: ActiveGeneration,
    audit: AuditTrail,
    clock: any GatewayClock,
    random: any RandomSource,
    pages: PageRenderer, address: ListenAddress? = nil, forwardingFaults: FoldedLog<LoggedForwardingFault>? = nil,
    eventLoops: any EventLoopGroup, logger: Logger,
    nodes: @escaping @Sendable () -> [ServingNode] = { [] },
    values: @escaping @Sendable (any PolicyGeneration) -> PolicyValues = { PolicyValues(generation: $0.id) },
    reload: @escaping @Sendable (_ isForced: Bool) async -> [ConfigurationProblem],
    outbox: @escaping @Sendable () -> [OutboxEntry],
    resetFactor: @escaping FactorResetting,
    sendInvitation: @escaping InvitationSender,
    suggestion: @escaping @Sendable (_ word: String, _ known: [String]) -> String = { _, _ in "" },
    shadow: ShadowControl = .none,
    upgrade: @escaping @Sendable (_ within: Duration) async -> UpgradeOutcome = { _ in
      .kept("This gateway cannot be upgraded while it runs.")
    },
    isEnding: @escaping @Sendable () -> Bool = { false },
    metrics: @escaping @Sendable () async -> [MetricFamily] = { [] }
  ) {
    let address = address ?? generations.current.gateway.admin
    self.address = address
    self.clock = clock
    let failures = AdminTokenFailures(clock: clock)
    let adminGuard = AdminGuard(
      listen: address, startTokens: generations.current.gateway.allAdminTokens, failures: failures)
    let calls: [[Endpoint]] = [
      HealthCalls(store: store, clock: clock, isEnding: isEnding, adminGuard: adminGuard).endpoints,
      PolicyCalls(
        generations: generations, nodes: nodes, reload: reload, values: values, audit: audit, clock: clock,
        adminGuard: adminGuard,
        suggestion: suggestion, shadow: shadow
      ).endpoints,
      MetricCalls(generations: generations, audit: audit, others: { await metrics() + failures.families }).endpoints,
      LockCalls(administration: accounts, clock: clock, adminGuard: adminGuard).endpoints,
      EventCalls(store: store, audit: audit, administration: accounts, clock: clock, suggestion: suggestion).endpoints,
      AccountCalls(
        administration: accounts, clock: clock, adminGuard: adminGuard, suggestion: suggestion, reset: resetFactor
      )
      .endpoints,
      GroupCalls(administration: accounts, adminGuard: adminGuard, suggestion: suggestion).endpoints,
      InvitationCalls(
        administration: accounts, clock: clock, adminGuard: adminGuard, suggestion: suggestion, send: sendInvitation
      ).endpoints,
      TokenCalls(tokens: tokens, adminGuard: adminGuard).endpoints,
      OutboxCalls(entries: outbox, pages: pages).endpoints,
      UpgradeCalls(
        upgrade: upgrade, operatorAudit: OperatorAudit(audit: audit, clock: clock, adminGuard: adminGuard),
        suggestion: suggestion
      ).endpoints,
    ]
    let endpoints = calls + [AdminDescription(describing: calls.flatMap { $0 }).endpoints, pages.endpoints]
    responder = GatewayResponder(
      table: EndpointTable(endpoints.flatMap { $0 }), generations: generations, random: random,
      recorder: RefusalRecorder(audit: audit, clock: clock, logger: logger), reader: BodyReader(),
      forwardingFaults: forwardingFaults ?? FoldedLog<LoggedForwardingFault>(logger: logger, clock: clock),
      refusalPage: { refusal, request, generation, _ in pages.page(for: refusal, to: request, generation) },
      guarded: { exchange, _ throws(Refusal) in try adminGuard.check(exchange) })
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
    try await AdminChannel(address, responder: responder.serving(clock: clock, logger: logger)).serve(
      socket, on: eventLoops, logger: logger, gate: gate, onListening: onListening)
  }
}
