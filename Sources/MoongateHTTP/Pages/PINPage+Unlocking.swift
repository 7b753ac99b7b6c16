import HTTPTypes
import MoongateCore
import MoongateSDK

// Locks and unlocking on the PIN page.

extension PINPage {
  /// The refusal of the next attempt while a lock is active, so that the page shows it before anything is typed; nil
  /// without a lock.
  func lock(in flow: String, _ purpose: FlowPurpose, _ exchange: Exchange) async throws(Refusal) -> Refusal? {
    guard purpose.step(of: provider) != .set else { return nil }
    let client = try await driver.caller(exchange)
    guard case .success(let until?) = await driver.engine.lock(of: provider, in: flow, client: client) else {
      return nil
    }
    let now = clock.now()
    return exchange.refusal(.tooManyAttempts, retryAfter: now < until ? until - now : nil)
  }

  /// Verifies a PIN that the user has just set, with the unlock flow, if the user continues to a route that requires
  /// it. The route would ask for it again at once. Everywhere else, setting a PIN does not count as passing it.
  /// - Returns: the cookies of the session that has passed the PIN; nil if it was not verified, so that a page that
  ///   requires it asks for it.
  func unlock(with chosen: InputValue?, after driven: FlowDriver.Outcome, _ exchange: Exchange) async -> [String]? {
    guard let chosen, driven.view.status == .complete, driven.view.isOfBrowser, let token = driven.view.session?.token,
      let target = driven.view.next, exchange.requires(provider, at: target),
      let unlocking = exchange.generation.flow(for: .factor(provider, .unlock))
    else { return nil }
    do throws(Refusal) {
      guard let session = try await driver.session(of: token, exchange) else { return nil }
      let made = try await driver.create(unlocking.name, returnTo: nil, in: session, exchange)
      let proved = try await driver.drive(exchange, as: made, in: session) { engine, client in
        await engine.begin(made.view.id, provider: provider.rawValue, fields: [current: chosen], client: client)
      }
      return proved.view.status == .complete ? made.cookies + proved.cookies : nil
    } catch {
      return nil
    }
  }

}

extension Account {
  /// A masked identifier by which the owner can recognise the account, preferably a verified one; nil if it has none.
  package var hint: String? {
    let own = identifiers.sorted { ($0.verifiedAt == nil ? 1 : 0) < ($1.verifiedAt == nil ? 1 : 0) }
    return (own.filter { $0.identifier.kind != .federated } + own).lazy.compactMap(\.identifier.hint).first
  }
}

extension Exchange {
  /// Whether the route of a path, or of a URL of the gateway, requires a provider's factor.
  func requires(_ provider: ProviderName, at target: String) -> Bool {
    var host = gateway.publicURL.host
    var path = target[...]
    if let separator = target.firstRange(of: "://"), !target.hasPrefix("/") {
      let authority = target[separator.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
      guard let named = HostName(String(authority)) else { return false }
      (host, path) = (named.name, target[authority.endIndex...])
    }
    let raw = String(path.prefix { $0 != "?" && $0 != "#" })
    guard case .route(let index) = RouteMatcher(generation.routes).find(raw, host: host, method: "GET"),
      case .passed(provider, _)? = generation.routes.routes[index].requirement
    else { return false }
    return true
  }

  /// Why a service requires the step; nil if no service requires it.
  ///
  /// It uses the service's name from the configuration and nothing from the address, so that a link cannot put text on
  /// the page.
  func reason(for purpose: FlowPurpose, returnTo: String?, _ words: Words) -> String? {
    let service: KeyValuePairs = ["service": gateway.brand.name ?? gateway.service]
    if let made = purpose.setProvider {
      guard let target = Self.target(behind: returnTo) else { return nil }
      return requires(made, at: target) ? words.text("asks_setup", service) : nil
    }
    guard let returnTo, !returnTo.hasPrefix("/auth/") else { return nil }
    return purpose.isProofAlone && purpose.needsSession ? words.text("asks_again", service) : nil
  }
}
