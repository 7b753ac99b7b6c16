import Hummingbird
import HummingbirdCore
import Logging
import MoongateCore
import NIOCore
import ServiceLifecycle

/// The public listener's own part: API and pages. What stands in front of it on the wire is `server`.
package struct PublicApplication: Service, CustomStringConvertible {
  /// Answers requests to the gateway's own addresses.
  package let responder: GatewayResponder
  private let address: ListenAddress
  private let server: HTTPServerBuilder
  private let eventLoops: any EventLoopGroup
  private let onListening: @Sendable (any Channel) async -> Void
  private let logger: Logger

  /// - Parameters:
  ///   - address: where it listens; nil: where gateway.lua says.
  ///   - keySet: makes the document of `/.well-known/moongate/jwks.json`.
  ///   - server: builds the channel of a connection.
  ///   - mounts: sites of others that are served here.
  ///   - bodies: bounds of the bodies of requests to the gateway itself.
  ///   - onListening: called with the listening channel once there is one.
  package init(
    engine: FlowEngine, store: any Store, generations: ActiveGeneration, providers: ProviderRegistry, clock: any GatewayClock,
    random: any RandomSource, audit: AuditTrail, keySet: @escaping @Sendable () -> String, pages: PageRenderer,
    address: ListenAddress? = nil, server: HTTPServerBuilder = .http1(),
    mounts: [Mount] = [], bodies: BodyReader = BodyReader(), eventLoops: any EventLoopGroup, logger: Logger,
    onListening: @escaping @Sendable (any Channel) async -> Void = { _ in }
  ) {
    let driver = FlowDriver(engine: engine, sessions: SessionDirectory(store: store, clock: clock), random: random)
    let ending = SessionEnding(store: store, clock: clock, random: random)
    let sessions = SessionCalls(driver: driver, ending: ending)
    let account = OwnAccountCalls(driver: driver)
    let api: [[Endpoint]] = [
      FlowCalls(driver: driver).endpoints, sessions.endpoints, account.endpoints, PersonalTokenCalls(driver: driver).endpoints,
      PhoneFormatCall(providers: providers, pages: pages).endpoints,
      SeedCalls(driver: driver, sessions: sessions, clock: clock).endpoints, ClientEventCall(driver: driver, clock: clock, audit: audit).endpoints,
    ]
    let described = OpenAPICall(
      describing: api.flatMap { $0 }, regions: PhoneFormatCall.regions(of: providers),
      events: ClientEvent.names(sites: ClientEvent.sites(of: providers)))
    let endpoints: [[Endpoint]] = [
      api.flatMap { $0 }, described.endpoints, KeySetCall(document: keySet).endpoints, WellKnownCall().endpoints,
      EntrancePage(.login, driver, pages).endpoints, EntrancePage(.register, driver, pages).endpoints,
      CallbackPage(driver: driver, pages: pages, clock: clock, audit: audit).endpoints, HookCall(driver: driver, clock: clock).endpoints,
      LogoutPage(driver: driver, ending: ending, pages: pages).endpoints, HandoffPage(driver: driver).endpoints,
      AccountPage(driver: driver, ending: ending, pages: pages).endpoints, TokenPage(driver: driver, pages: pages).endpoints,
      AccountEndPage(driver: driver, pages: pages, calls: account).endpoints, ChoosePage(driver: driver, pages: pages).endpoints,
      StepPage(driver: driver, pages: pages, clock: clock).endpoints, ProviderPages(driver: driver, pages: pages, clock: clock).endpoints,
      ErrorPage(pages: pages, audit: audit).endpoints, pages.endpoints,
    ]
    responder = GatewayResponder(
      table: EndpointTable(endpoints.flatMap { $0 }), generations: generations, random: random,
      recorder: RefusalRecorder(audit: audit, clock: clock, logger: logger), reader: bodies, pages: pages, providers: providers,
      mounts: mounts,
      guarded: { exchange, kind throws(Refusal) in try exchange.checkOrigin(for: kind) })
    self.address = address ?? generations.current.gateway.listen
    self.server = server
    self.eventLoops = eventLoops
    self.onListening = onListening
    self.logger = logger
  }

  /// The application around the responder: what tests run too.
  package var application: Application<GatewayResponder> {
    Application(
      responder: responder, server: server,
      configuration: ApplicationConfiguration(address: .hostname(address.host, port: address.port), serverName: nil),
      onServerRunning: onListening, eventLoopGroupProvider: .shared(eventLoops), logger: logger.ofLibrary)
  }

  /// For logs, which would otherwise be told everything that is in here.
  package var description: String { "the public listener on \(address)" }

  package func run() async throws { try await application.run() }
}
