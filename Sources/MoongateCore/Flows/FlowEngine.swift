import Logging
import MoongateSDK

/// Runs flows: the one door to signing in. `serve`, tests and the simulator all go through it; only clock, randomness and
/// store differ.
package struct FlowEngine: Sendable {
  let store: any Store
  let generations: ActiveGeneration
  let providers: ProviderRegistry
  let delivery: any DeliveryService
  let clock: any GatewayClock
  let random: any RandomSource
  let keys: KeyRing
  let audit: AuditTrail
  let logger: Logger

  package init(
    store: any Store, generations: ActiveGeneration, providers: ProviderRegistry, delivery: any DeliveryService, clock: any GatewayClock,
    random: any RandomSource, keys: KeyRing, audit: AuditTrail, logger: Logger
  ) {
    self.store = store
    self.generations = generations
    self.providers = providers
    self.delivery = delivery
    self.clock = clock
    self.random = random
    self.keys = keys
    self.audit = audit
    self.logger = logger
  }

  /// Begins a flow.
  /// - Parameters:
  ///   - returnTo: judged already (`RedirectTargets`); nil where it was refused or not given.
  ///   - browser: the hash of the browser's cookie, where the request carried an `Origin`: the flow is that browser's alone.
  package func create(_ name: String, returnTo: String?, browser: TokenHash?, client: ClientContext) async -> Result<FlowView, Refusal> {
    .failure(Refusal(.flowNotFound, decision: client.decision))
  }

  /// The flow as it stands.
  package func view(_ id: FlowID, client: ClientContext) async -> Result<FlowView, Refusal> {
    .failure(Refusal(.flowNotFound, decision: client.decision))
  }

  /// Opens a step.
  /// - Parameter provider: nil where the step has one choice and the client names none.
  package func begin(_ id: FlowID, provider: String?, fields: [String: InputValue], client: ClientContext) async -> Result<FlowView, Refusal> {
    .failure(Refusal(.flowNotFound, decision: client.decision))
  }

  /// Judges what the person sent for the open step.
  package func submit(_ id: FlowID, fields: [String: InputValue], client: ClientContext) async -> Result<FlowView, Refusal> {
    .failure(Refusal(.flowNotFound, decision: client.decision))
  }

  /// Sends another code for the open step; the one before it is dead.
  package func resend(_ id: FlowID, client: ClientContext) async -> Result<FlowView, Refusal> {
    .failure(Refusal(.flowNotFound, decision: client.decision))
  }

  /// Leaves out the step, where it may be.
  package func skip(_ id: FlowID, client: ClientContext) async -> Result<FlowView, Refusal> {
    .failure(Refusal(.flowNotFound, decision: client.decision))
  }

  /// Ends the flow.
  package func delete(_ id: FlowID, client: ClientContext) async -> Result<Void, Refusal> {
    .failure(Refusal(.flowNotFound, decision: client.decision))
  }
}
