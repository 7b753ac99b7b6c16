import Hummingbird
import HummingbirdCore
import Logging
import MoongateCore
import NIOCore

/// Calls and pages that another target adds to the public listener.
package protocol AddedCalls: Sendable {
  func endpoints(_ driver: FlowDriver, _ sessions: SessionCalls, _ pages: PageRenderer) -> [Endpoint]
  /// Schemas that the calls use in `openapi.json`.
  var schemas: [(key: String, value: JSONValue)] { get }
}

/// The gateway's own endpoints on the public listener: API and pages. `server` is the channel in front of them.
package struct PublicApplication: ListeningApplication {
  /// Builds the channel of a connection around the responder of its requests.
  package typealias ChannelBuilder = @Sendable (@escaping HTTPChannelHandler.Responder) -> any ServerChildChannel

  /// Answers requests to the gateway's own paths.
  package let responder: GatewayResponder
  private let server: ChannelBuilder
  private let clock: any GatewayClock
  private let eventLoops: any EventLoopGroup
  private let logger: Logger

  /// More than five parameters: one for each service.
  /// - Parameters:
  /// - adding: the calls and pages of other targets.
  /// - keySet: returns the document of `/.well-known/moongate/jwks.json`.
  /// - server: builds the channel of a connection.
  /// - bodies: limits on request bodies.
  /// - forwardingFaults: the log that the data path uses; nil for one of its own.
  package init(
    engine: FlowEngine, store: any Store, generations: ActiveGeneration, providers: ProviderRegistry,
    clock: any GatewayClock,
    random: any RandomSource, keys: KeyRing, audit: AuditTrail, keySet: @escaping @Sendable () -> String,
    pages: PageRenderer, adding: [any AddedCalls] = [],
    server: @escaping ChannelBuilder = { HTTP1Channel(responder: $0) },
    bodies: BodyReader = BodyReader(), forwardingFaults: FoldedLog<LoggedForwardingFault>? = nil,
    eventLoops: any EventLoopGroup, logger: Logger
  ) {
    let driver = FlowDriver(engine: engine, sessions: SessionDirectory(store: store, clock: clock), random: random)
    let ending = SessionEnding(store: store, clock: clock, random: random)
    let sessions = SessionCalls(driver: driver, ending: ending)
    let account = OwnAccountCalls(driver: driver)
    let api: [[Endpoint]] = [
      FlowCalls(driver: driver).endpoints.map(\.inFrames), sessions.endpoints, account.endpoints,
      PersonalTokenCalls(driver: driver).endpoints, DeviceCalls(driver: driver).endpoints,
      ConnectedAppCalls(driver: driver).endpoints,
      PhoneFormatCall(providers: providers, pages: pages).endpoints,
      adding.flatMap { $0.endpoints(driver, sessions, pages) },
    ]
    let described = OpenAPICall(
      describing: api.flatMap { $0 }, regions: PhoneFormatCall.regions(of: providers),
      schemas: adding.flatMap(\.schemas))
    let endpoints: [[Endpoint]] = [
      api.flatMap { $0 }, described.endpoints, KeySetCall(document: keySet).endpoints,
      ForwardingCall(keys: keys, clock: clock).endpoints, WellKnownCall().endpoints,
      InvitationPage(driver: driver).endpoints, HookCall(driver: driver, clock: clock).endpoints,
      EmbeddedSignOutPage(driver: driver, ending: ending).endpoints,
      AccountPage(driver: driver, ending: ending, pages: pages).endpoints,
      TokenPage(driver: driver, pages: pages).endpoints, ConnectedAppPage(driver: driver, pages: pages).endpoints,
      AccountEndPage(driver: driver, pages: pages, calls: account).endpoints,
      AppPage(driver: driver, pages: pages).endpoints, pages.endpoints,
    ]
    let signIn: [[Endpoint]] = [
      SignInPage(.login, driver, pages).endpoints, SignInPage(.register, driver, pages).endpoints,
      CallbackPage(driver: driver, pages: pages, clock: clock, audit: audit).endpoints,
      LogoutPage(driver: driver, ending: ending, pages: pages).endpoints, HandoffPage(driver: driver).endpoints,
      ChoosePage(driver: driver, pages: pages).endpoints,
      StepPage(driver: driver, pages: pages, clock: clock).endpoints,
      ProviderPages(driver: driver, pages: pages, clock: clock).endpoints,
      ErrorPage(pages: pages, audit: audit).endpoints,
    ]
    responder = GatewayResponder(
      table: EndpointTable(endpoints.flatMap { $0 } + signIn.flatMap { $0.map(\.inFrames) }),
      generations: generations, random: random,
      recorder: RefusalRecorder(audit: audit, clock: clock, logger: logger), reader: bodies,
      forwardingFaults: forwardingFaults ?? FoldedLog<LoggedForwardingFault>(logger: logger, clock: clock),
      providers: providers, keys: keys,
      refusalPage: { refusal, request, generation, frame in
        pages.page(for: refusal, to: request, generation, in: frame)
      },
      guarded: { exchange, kind throws(Refusal) in try exchange.checkOrigin(for: kind) })
    self.server = server
    self.clock = clock
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
    try await server(responder.serving(clock: clock, logger: logger)).serve(
      socket, on: eventLoops, logger: logger, gate: gate, onListening: onListening)
  }
}
