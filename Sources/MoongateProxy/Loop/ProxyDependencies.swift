import Logging
import MoongateCore

/// The dependencies of the data path.
package struct ProxyDependencies: Sendable {
  package let generation: ActiveGeneration
  package let sessions: SessionDirectory
  /// nil if all access tokens are invalid.
  let tokens: AccessTokenDirectory?
  package let watch: SessionWatch
  /// Stores the last activity of sessions.
  package let activity: any SessionStore
  package let keys: KeyRing
  package let clock: any GatewayClock
  package let random: any RandomSource
  package let audit: AuditTrail
  package let logger: Logger
  let policyFaults: FoldedLog<LoggedPolicyFault>
  /// The providers of the program, for the pages that users are redirected to.
  let providers: ProviderRegistry
  /// Makes the access tokens for services of routes with `bearer`; nil: they get none.
  let apps: Apps?
  /// Receives the spans of requests.
  let spans: SpanQueue
  /// Evaluates requests in shadow mode while there is a candidate.
  let shadow: PolicyShadow?
  /// The maximum number of connections that the process can serve, whatever `limits.connections` says.
  let mostConnections: Int

  /// More than five parameters: one for each service.
  /// - Parameter policyFaults: receives errors of `decide`; nil to log them individually.
  package init(
    generation: ActiveGeneration, sessions: SessionDirectory, watch: SessionWatch, activity: any SessionStore,
    keys: KeyRing,
    clock: any GatewayClock, random: any RandomSource, audit: AuditTrail, logger: Logger,
    policyFaults: FoldedLog<LoggedPolicyFault>? = nil,
    providers: ProviderRegistry = .none, tokens: AccessTokenDirectory? = nil, apps: Apps? = nil,
    spans: SpanQueue = SpanQueue(),
    shadow: PolicyShadow? = nil, mostConnections: Int = .max
  ) {
    self.mostConnections = mostConnections
    self.spans = spans
    self.shadow = shadow
    self.tokens = tokens
    self.apps = apps
    self.providers = providers
    self.generation = generation
    self.sessions = sessions
    self.watch = watch
    self.activity = activity
    self.keys = keys
    self.clock = clock
    self.random = random
    self.audit = audit
    self.logger = logger
    self.policyFaults = policyFaults ?? FoldedLog<LoggedPolicyFault>(logger: logger, clock: clock)
  }
}
