import Hummingbird
import MoongateCore
import MoongateHTTP
import MoongateSDK

/// The endpoints of Moongate as an OpenID provider (OpenID Connect Core 1.0), and their pages, for the apps of
/// apps.lua. They exist while it has apps.
package struct OpenIDProvider: AddedCalls {
  private let apps: Apps
  private let keys: KeyRing
  private let authentication: ClientAuthentication
  private let ending: SessionEnding
  private let random: any RandomSource

  /// More than five parameters: one for each service.
  /// - Parameter web: fetches the keys of apps.
  package init(
    apps: Apps, store: any Store, keys: KeyRing, web: any WebClient, clock: any GatewayClock, random: any RandomSource
  ) {
    self.apps = apps
    self.keys = keys
    self.random = random
    ending = SessionEnding(store: store, clock: clock, random: random)
    authentication = ClientAuthentication(
      failures: apps.limiter,
      assertions: ClientAssertions(keySets: ClientKeySets(web: web, clock: clock), store: store, clock: clock))
  }

  /// None: `openapi.json` describes the gateway's own API, and standards describe these endpoints.
  package var schemas: [(key: String, value: JSONValue)] { [] }

  package func endpoints(_ driver: FlowDriver, _ sessions: SessionCalls, _ pages: PageRenderer) -> [Endpoint] {
    let clients = ClientEndpoints(authentication: authentication)
    let reader = AuthorizationReader(apps: apps, random: random)
    let pushed = PushedRequests(clients: clients, reader: reader, apps: apps, keys: keys)
    let continuation = AppContinuation(
      apps: apps, driver: driver, pages: pages, answers: AuthorizationAnswers(pages: pages), keys: keys)
    let all: [[Endpoint]] = [
      Discovery(pages: pages).endpoints, KeysEndpoint(apps: apps).endpoints,
      AuthorizeEndpoint(reader: reader, pushed: pushed, continuation: continuation, random: random).endpoints,
      continuation.endpoints, pushed.endpoints, TokenEndpoint(clients: clients, apps: apps).endpoints,
      TokenInspection(clients: clients, apps: apps, keys: keys).endpoints,
      SignOutEndpoint(
        driver: driver, pages: pages, apps: apps, keys: keys,
        signOut: LogoutPage(driver: driver, ending: ending, pages: pages)
      ).endpoints,
      ConsentPage(driver: driver, pages: pages, keys: keys).endpoints,
      DevicePage(driver: driver, pages: pages, apps: apps).endpoints,
      DeviceCall(clients: clients, apps: apps).endpoints,
    ]
    return all.flatMap { $0 }.map(\.whileThereAreApps)
  }
}

extension Endpoint {
  /// The endpoint, which answers 404 while the generation of the request has no apps.
  fileprivate var whileThereAreApps: Endpoint {
    wrapped { exchange, handle throws(Refusal) in
      guard !exchange.generation.apps.apps.isEmpty else { throw exchange.refusal(.notFound) }
      return try await handle(exchange)
    }
  }
}
