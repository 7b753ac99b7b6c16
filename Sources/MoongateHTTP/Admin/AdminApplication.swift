import Hummingbird
import HummingbirdCore
import Logging
import MoongateCore
import MoongateSDK
import NIOCore
import ServiceLifecycle

/// The operator's listener: health, policy, locks, events, outbox. Where gateway.lua names tokens it asks for one; otherwise it asks
/// nobody who they are, and listens on loopback alone.
package struct AdminApplication: Service, CustomStringConvertible {
  /// Answers the operator's requests.
  package let responder: GatewayResponder
  private let address: ListenAddress
  private let eventLoops: any EventLoopGroup
  private let onListening: @Sendable (any Channel) async -> Void
  private let logger: Logger

  /// - Parameters:
  ///   - accounts: what an operator does to people.
  ///   - tokens: and to the tokens of programs.
  ///   - address: where it listens; nil: where gateway.lua says.
  ///   - nodes: the gateways that serve from the store; none while that is not known.
  ///   - reload: builds a generation from the folder and switches to it; gives the problems for which it was refused.
  ///   - outbox: the messages of the outbox, newest first.
  ///   - resetFactor: removes a factor of an account.
  ///   - suggestion: what follows a word that is not known, such as "; did you mean `kind`?".
  ///   - metrics: what other parts have counted.
  ///   - onListening: called with the listening channel once there is one.
  package init(
    store: any Store, accounts: AccountAdministration, tokens: ServiceTokens, generations: ActiveGeneration, audit: AuditTrail,
    clock: any GatewayClock,
    random: any RandomSource,
    pages: PageRenderer, address: ListenAddress? = nil, eventLoops: any EventLoopGroup, logger: Logger,
    nodes: @escaping @Sendable () -> [ServingNode] = { [] }, reload: @escaping @Sendable () async -> [ConfigurationProblem],
    outbox: @escaping @Sendable () -> [OutboxEntry],
    resetFactor: @escaping FactorResetting, suggestion: @escaping @Sendable (_ word: String, _ known: [String]) -> String = { _, _ in "" },
    metrics: @escaping @Sendable () async -> [MetricFamily] = { [] }, onListening: @escaping @Sendable (any Channel) async -> Void = { _ in }
  ) {
    let address = address ?? generations.current.gateway.admin
    self.address = address
    let failures = AdminTokenFailures(clock: clock)
    let entrance = AdminGuard(listen: address, startTokens: generations.current.gateway.allAdminTokens, failures: failures)
    let calls: [[Endpoint]] = [
      HealthCalls(store: store, entrance: entrance).endpoints,
      PolicyCalls(generations: generations, nodes: nodes, reload: reload, audit: audit, clock: clock, entrance: entrance).endpoints,
      MetricCalls(generations: generations, audit: audit, others: { await metrics() + failures.families }).endpoints,
      LockCalls(desk: accounts, clock: clock, entrance: entrance).endpoints,
      EventCalls(store: store, audit: audit, desk: accounts, clock: clock, suggestion: suggestion).endpoints,
      AccountCalls(desk: accounts, clock: clock, entrance: entrance, suggestion: suggestion, reset: resetFactor).endpoints,
      GroupCalls(desk: accounts, entrance: entrance).endpoints, TokenCalls(tokens: tokens, entrance: entrance).endpoints,
      OutboxCalls(entries: outbox, pages: pages).endpoints,
    ]
    let endpoints = calls + [AdminDescription(describing: calls.flatMap { $0 }).endpoints, pages.endpoints]
    responder = GatewayResponder(
      table: EndpointTable(endpoints.flatMap { $0 }), generations: generations, random: random,
      recorder: RefusalRecorder(audit: audit, clock: clock, logger: logger), reader: BodyReader(), pages: pages,
      guarded: { exchange, _ throws(Refusal) in try entrance.check(exchange) })
    self.eventLoops = eventLoops
    self.onListening = onListening
    self.logger = logger
  }

  /// The application around the responder: what tests run too.
  package var application: Application<GatewayResponder> {
    Application(
      responder: responder, configuration: ApplicationConfiguration(address: .hostname(address.host, port: address.port), serverName: nil),
      onServerRunning: onListening, eventLoopGroupProvider: .shared(eventLoops), logger: logger.ofLibrary)
  }

  /// For logs, which would otherwise be told everything that is in here.
  package var description: String { "the admin listener on \(address)" }

  package func run() async throws { try await application.run() }
}
