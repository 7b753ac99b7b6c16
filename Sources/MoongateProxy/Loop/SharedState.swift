import MoongateCore
import Synchronization

/// Creates the page of a refusal for browsers; nil if there is no page for it.
/// - Parameters:
///   - visitor: the signed-in user, if the refusal depends on the user.
///   - languages: the request's `Accept-Language`.
package typealias RefusalPage =
  @Sendable (_ refusal: Refusal, _ visitor: RefusedVisitor?, _ languages: String?) -> String?

/// A refusal on a route with `error_pages`.
package struct RefusedRequest: Sendable {
  package let refusal: Refusal
  /// The signed-in user, if the refusal depends on the user.
  package let visitor: RefusedVisitor?
  /// The request's `Accept-Language`.
  package let languages: String?
  /// The folder below `pages/` with the templates.
  package let templates: String
  /// Allows the style elements of the page that have it (Content Security Policy Level 3, section 2.3.1).
  package let nonce: String

  package init(refusal: Refusal, visitor: RefusedVisitor?, languages: String?, templates: String, nonce: String) {
    self.refusal = refusal
    self.visitor = visitor
    self.languages = languages
    self.templates = templates
    self.nonce = nonce
  }
}

/// Creates the page of a refusal from the templates of the route; nil if none of them is for the refusal.
package typealias ErrorPage = @Sendable (RefusedRequest) -> String?

/// What all event loops of the data path share. Everything in it can be used from any thread.
final class SharedState: Sendable {
  let dependencies: ProxyDependencies
  let assertions: RotatingKeys
  let connections = ConnectionCount()
  let addresses = AddressTable()
  let rates = RouteRates()
  let healthChecks = HealthCheckTable()
  let redirectLoops = RedirectLoopDetector()
  let page: RefusalPage?
  let errorPage: ErrorPage?
  let accessLog: AccessLog?
  let upstreamFailures: FoldedLog<LoggedUpstreamFailure>
  let upstreamHealth: FoldedLog<LoggedUpstreamHealth>
  let forwardingFaults: FoldedLog<LoggedForwardingFault>
  let http2Limits: FoldedLog<LoggedHTTP2Limit>
  let proxyHeaders: FoldedLog<LoggedProxyHeader>
  let missingTokens: FoldedLog<LoggedMissingToken>
  let outsideAddresses: FoldedLog<LoggedOutsideAddress>
  let trust = CacheTrust()
  private let idleNanoseconds = Atomic<Int64>(250_000_000)

  init(_ dependencies: ProxyDependencies, accessLog: AccessLog?, page: RefusalPage?, errorPage: ErrorPage? = nil) {
    self.dependencies = dependencies
    self.accessLog = accessLog
    self.page = page
    self.errorPage = errorPage
    upstreamFailures = FoldedLog<LoggedUpstreamFailure>(logger: dependencies.logger, clock: dependencies.clock)
    upstreamHealth = FoldedLog<LoggedUpstreamHealth>(logger: dependencies.logger, clock: dependencies.clock)
    forwardingFaults = FoldedLog<LoggedForwardingFault>(logger: dependencies.logger, clock: dependencies.clock)
    http2Limits = FoldedLog<LoggedHTTP2Limit>(logger: dependencies.logger, clock: dependencies.clock)
    proxyHeaders = FoldedLog<LoggedProxyHeader>(logger: dependencies.logger, clock: dependencies.clock)
    missingTokens = FoldedLog<LoggedMissingToken>(logger: dependencies.logger, clock: dependencies.clock)
    outsideAddresses = FoldedLog<LoggedOutsideAddress>(logger: dependencies.logger, clock: dependencies.clock)
    assertions = RotatingKeys(dependencies.keys, for: .assertions, at: dependencies.clock.now())
  }

  /// How long an idle HTTP/1.1 connection stays open after the listener has shut down.
  var idleWhileDraining: Duration {
    get { .nanoseconds(idleNanoseconds.load(ordering: .relaxed)) }
    set { idleNanoseconds.store(newValue.wholeNanoseconds, ordering: .relaxed) }
  }
}
