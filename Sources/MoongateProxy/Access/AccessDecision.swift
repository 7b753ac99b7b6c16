import MoongateCore
import MoongateSDK
import NIOCore

/// The decision about a request, and the facts that the connection records with it.
///
/// It contains no response: the proxy and forward-auth each translate the outcome into their own.
struct AccessDecision {
  /// Large values of rare cases are indirect, so that an allowed request copies little.
  enum Outcome {
    case pass(AccessGrant)
    /// Redirect to a gateway page, with the value of Location.
    case redirect(String)
    /// No route matches.
    case noRoute
    indirect case refuse(RequestRefusal)
    /// The client is in a redirect loop and gets an explanation instead of another redirect.
    indirect case loops(RedirectLoop)
    /// The store must be asked. Call `Authorizer.authorize` again with its answer.
    indirect case needsLookup(CredentialLookup)
  }

  /// What a shadow policy may see of the request.
  enum ShadowView {
    /// Nothing: the requester is not known for certain.
    case hidden
    case anonymous
    case session(CachedSession)
  }

  let outcome: Outcome
  /// The matched route, if any.
  let route: RoutePlan?
  let shadow: ShadowView
  /// Whether the route's requirements were checked. A request that needs only a live session is not checked further.
  let requirementsRan: Bool
  /// Why a policy failed for the session, if the route is open and the request continues as anonymous. It is logged.
  let ignored: IgnoredFault?

  init(
    _ outcome: Outcome, route: RoutePlan? = nil, shadow: ShadowView = .hidden, requirementsRan: Bool = false,
    ignored: IgnoredFault? = nil
  ) {
    self.outcome = outcome
    self.route = route
    self.shadow = shadow
    self.requirementsRan = requirementsRan
    self.ignored = ignored
  }
}

/// A policy error that refuses no request.
///
/// An object, so that decisions, of which few have one, stay small.
final class IgnoredFault {
  let fault: PolicyFault
  /// The rule that failed.
  let rule: String

  init(_ fault: PolicyFault, rule: String) {
    self.fault = fault
    self.rule = rule
  }
}

/// What an allowed request may use.
struct AccessGrant {
  let route: RoutePlan
  /// The session or access token; nil for an anonymous request on an open route.
  let session: CachedSession?
  /// The groups and claims of the session.
  let entitlements: Entitlements
  /// Whether the session token was sent as a cookie, possibly in addition to Bearer.
  let isCookie: Bool
  /// Whether the request is admitted because of the client's network, and has no session.
  var isByNetwork = false
  /// Whether an access token was sent by Basic authentication.
  let isBasic: Bool
  /// Whether the request contains a cookie of the gateway, which is not forwarded.
  let hasOurCookies: Bool
  /// Whether the client's Authorization must not be forwarded.
  var dropsAuthorization: Bool
  /// The header line of Authorization that the gateway states in its place; empty if it states none.
  var authorization: [UInt8] = []
  /// The client's address if an access token was used, and nil otherwise.
  let tokenAddress: ClientAddress?
}

/// A credential that the caches do not know: of the client, or for the service.
enum CredentialLookup {
  case session(SessionKey)
  /// - secret: nil for text that cannot be a token.
  case token(SessionKey, secret: SecretText?, from: ClientAddress)
  /// The access token of a session for the service of a route.
  case bearer(CachedSession, BearerQuestion)
}

/// A question to `Apps`: the access token of an app for the service of a route.
struct BearerQuestion {
  let app: App
  let key: BearerKey
  let client: ClientFacts
  let route: Route
}

/// The time of a decision.
struct AccessTime {
  let now: Timestamp
  /// Whether the store's change notifications are being received, so that the caches can be used.
  let storeIsFresh: Bool
  /// The monotonic clock of the event loop.
  let monotonic: NIODeadline
}
